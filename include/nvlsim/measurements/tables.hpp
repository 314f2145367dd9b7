// Validators, one per kind of table.
#pragma once

#include <functional>
#include <vector>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/validate.hpp"

namespace nvlsim {

/// Creates a record with status `ok` from the columns id, system, model and suspect.
validation_record record_of(const csv_row& row, const std::string& table);

/// Records in `r` why its row could not be simulated. Call in a catch block. An invalid cell gives `error`; a
/// missing or unhandled input gives `unsupported`. Rethrows any other exception.
void record_failure(validation_record& r);

/// The records of all rows in their order; rows are simulated on all processors.
std::vector<validation_record> records_by_row(
    const csv_table& t, const progress& report,
    const std::function<std::vector<validation_record>(const csv_row&)>& records_of);
/// One record for each row of a table, as `fill` completes it. What `fill` throws becomes the record's failure.
std::vector<validation_record> validate_rows(const csv_table& t, const progress& report,
                                             const std::function<void(const csv_row&, validation_record&)>& fill);

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
std::vector<validation_record> validate_kv_capacity(const csv_table& t, const data_folders& data,
                                                    const progress& report);
std::vector<validation_record> validate_goodput(const csv_table& t, const data_folders& data,
                                                const progress& report);
std::vector<validation_record> validate_pairs(const csv_table& t, const data_folders& data,
                                              const progress& report);
std::vector<validation_record> validate_posttraining(const csv_table& t, const data_folders& data,
                                                     const progress& report);
std::vector<validation_record> validate_collectives(const csv_table& t, const data_folders& data,
                                                    const progress& report);

}  // namespace nvlsim
