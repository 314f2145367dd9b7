// Files of a sweep folder.
#pragma once

#include <map>
#include <string>

#include "nvlsim/sweep/sweep.hpp"

namespace nvlsim {

/// The outcome of a point, by id: a JSON object on a line.
value record_of(const std::string& id, std::string_view status, std::vector<std::string> reasons,
                const value& metrics);

bool is_record(const value& v);

/// Counts the first reason of a record whose point has no metrics to show.
void add_reason(sweep_reasons& to, const value& record);

/// Records of every shard's file by point id; the last of an id counts. A line that was cut off is none.
std::map<std::string, value> read_records(const std::filesystem::path& folder);

/// The file of one shard, held by this process alone.
class record_file {
 public:
  /// Drops a line that was cut off at the end. Throws io_error, also when another process has the file.
  record_file(const std::filesystem::path& folder, std::int64_t shard, std::int64_t shards);
  ~record_file();
  record_file(const record_file&) = delete;
  record_file& operator=(const record_file&) = delete;
  /// One write of a whole line.
  void append(const std::string& line);

 private:
  int fd_ = -1;
  std::string name_;
};

/// As options of `--set`.
std::vector<override_option> overrides_of(const point_settings& set);

}  // namespace nvlsim
