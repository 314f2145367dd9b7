// One validator for each kind of table.
#pragma once

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/validate.hpp"

namespace nvlsim {

/// A record with what the columns id, system, model and suspect say, `ok` so far.
validation_record record_of(const csv_row& row, const std::string& table);

/// To be called in a catch block: says in `r` what kept its row from being simulated. A cell that cannot be read
/// is an `error`, an input that is not to be had or not handled `unsupported`; any other exception is thrown on.
void record_failure(validation_record& r);

std::vector<validation_record> validate_training(const csv_table& t, const data_folders& data,
                                                 const progress& report);
std::vector<validation_record> validate_memory(const csv_table& t, const data_folders& data,
                                               const progress& report);
std::vector<validation_record> validate_models(const csv_table& t, const data_folders& data,
                                               const progress& report);
std::vector<validation_record> validate_kernels(const csv_table& t, const data_folders& data,
                                                const progress& report);
std::vector<validation_record> validate_inference(const csv_table& t, const data_folders& data,
                                                  const progress& report);
std::vector<validation_record> validate_collectives(const csv_table& t, const data_folders& data,
                                                    const progress& report);

}  // namespace nvlsim
