// One validator for each kind of table.
#pragma once

#include "nvlsim/validate.hpp"
#include "study/csv.hpp"

namespace nvlsim {

std::vector<validation_record> validate_training(const csv_table& t, const data_folders& data, const progress& report);
std::vector<validation_record> validate_memory(const csv_table& t, const data_folders& data, const progress& report);
std::vector<validation_record> validate_kernels(const csv_table& t, const data_folders& data, const progress& report);
std::vector<validation_record> validate_inference(const csv_table& t, const data_folders& data, const progress& report);
std::vector<validation_record> validate_collectives(const csv_table& t, const data_folders& data, const progress& report);

}  // namespace nvlsim
