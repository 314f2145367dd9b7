// The files of a sweep folder.
#pragma once

#include <map>
#include <string>

#include "nvlsim/sweep/sweep.hpp"

namespace nvlsim {

/// Builds a record: the outcome of the point with this id, a one-line JSON object.
value record_of(const std::string& id, std::string_view status, std::vector<std::string> reasons,
                const value& metrics);

bool is_record(const value& v);

/// Counts the first reason of a record without metrics.
void add_reason(sweep_reasons& to, const value& record);

/// Reads the records of all shards, by point id. The last record of an id counts. Ignores truncated lines.
std::map<std::string, value> read_records(const std::filesystem::path& folder);

/// The record file of one shard, locked by this process.
class record_file {
 public:
  /// Opens and locks the file and drops a truncated last line. Throws io_error on failure or if another process
  /// holds the lock.
  record_file(const std::filesystem::path& folder, std::int64_t shard, std::int64_t shards);
  ~record_file();
  record_file(const record_file&) = delete;
  record_file& operator=(const record_file&) = delete;
  /// Appends a line with a single write.
  void append(const std::string& line);

 private:
  int fd_ = -1;
  std::string name_;
};

/// The settings as `--set` options.
std::vector<override_option> overrides_of(const point_settings& set);

}  // namespace nvlsim
