// Platforms, stacks and models by name or path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// A value read from files together with its document, for provenance and resolved inputs.
template <class T>
struct loaded {
  T content;
  config::document source;
};

/// One override with where it was written.
struct override_at {
  std::string pointer;
  value v;
  config::origin by;
  std::string written_at;  ///< pointer for messages, when it is written elsewhere than where it points
};

/// "a result" for a document whose `"schema"` says so; "" when it has none or is of the `wanted` kind
/// ("scenario").
std::string other_kind(const value& root, std::string_view wanted);
/// Whether an input is named by its file: it has a "/" or ends in ".json".
bool is_path(std::string_view name);
/// What an input named so is called: the name, a file's stem, or, of a checkpoint, the name of its folder.
std::string input_name(const std::string& name);

/// `name` is a name in the folder or the path of a file (it then has a "/" or ends in ".json"), for a model also
/// that of a folder with a config.json; an hf_quant_config.json beside a config.json is read with it. Problems are
/// added, of a path that cannot be read too, and the content is then unusable. `asked_by` locates the name.
loaded<platform> load_platform(const std::string& name, const data_folders& data,
                               const std::vector<override_at>& sets, const problem& asked_by,
                               diagnostics& problems);
loaded<stack> load_stack(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                         const problem& asked_by, diagnostics& problems);
/// A stack with what its text alone gives.
struct known_stack {
  loaded<stack> file;
  value resolved;
  std::string digest;
};
/// As load_stack, once a process for each stack without overrides, until a file of its folders changes: stacks are
/// the longest inputs, and sweeps and searches read thousands of scenarios on one. May be called by several
/// threads.
std::shared_ptr<const known_stack> share_stack(const std::string& name, const data_folders& data,
                                               const std::vector<override_at>& sets, const problem& asked_by,
                                               diagnostics& problems);
loaded<model> load_model(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                         const problem& asked_by, diagnostics& problems);

}  // namespace nvlsim
