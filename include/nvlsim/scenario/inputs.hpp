// Loading platforms, stacks and models by name or path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

struct loop_profile;  // nvlsim/post_training/post_training.hpp

/// A loaded input with its document, for provenance and resolved inputs.
template <class T>
struct loaded {
  T content;
  config::document source;
  std::string digest = {};  ///< of the resolved text; empty if it has not been computed
};

/// One override, with the place where it was written.
struct override_at {
  std::string pointer;
  value v;
  config::origin by;
  std::string written_at;  ///< pointer for messages, if it differs from `pointer`
};

/// Kind of a document by its `"schema"`, such as "a result". Empty if it has no schema or is of the `wanted` kind
/// ("scenario").
std::string other_kind(const value& root, std::string_view wanted);
/// Whether an input is given by path: it contains "/" or ends in ".json".
bool is_path(std::string_view name);
/// Display name of an input: the name itself, the stem of a file, or the folder name of a checkpoint.
std::string input_name(const std::string& name);

/// Loads an input by name from its folder, or by path (see `is_path`). A model may also be a folder with a
/// config.json; an hf_quant_config.json in the same folder is read too. Adds all problems, including unreadable
/// paths; the content is then unusable. `asked_by` is where the name was given.
loaded<platform> load_platform(const std::string& name, const data_folders& data,
                               const std::vector<override_at>& sets, const problem& asked_by,
                               diagnostics& problems);
/// A stack that a scenario names.
struct wanted_stack {
  std::string name;
  std::vector<override_at> sets = {};
  problem asked_by = {};
  bool digest_alone = false;         ///< what overrides change is in the digest, and need not be in the rest
  std::string at = "/stack";         ///< pointer below which its constants are named
  bool without_collectives = false;  ///< the library of collectives need not be read
};
/// A stack is also named by its framework and release, "vllm-0.12". An override of a part by text names another
/// library:
/// `/collectives` = "nccl-2.30".
loaded<stack> load_stack(const wanted_stack& wanted, const data_folders& data, diagnostics& problems);
/// A stack with its resolved text and digest.
struct known_stack {
  loaded<stack> file;
  value resolved;
  std::string digest;                     ///< of the digests of its members
  std::vector<std::string> members = {};  ///< these, in the order of `resolved`
};
/// A stack as it was loaded, with the digests.
known_stack with_digests(loaded<stack> file);
/// Like load_stack, but reads each stack without overrides once per process, until a file in its folders changes.
/// Stacks are the largest inputs, and sweeps and searches read thousands of scenarios that share one. Thread-safe.
std::shared_ptr<const known_stack> share_stack(const wanted_stack& wanted, const data_folders& data,
                                               diagnostics& problems);
loaded<model> load_model(const std::string& name, const data_folders& data, const std::vector<override_at>& sets,
                         const problem& asked_by, diagnostics& problems);

/// What a framework's loop of rollouts and updates costs, from `platforms/loops/NAME.json`. Throws input_error
/// with all problems.
loop_profile load_loop_profile(const std::string& name, const data_folders& data);

}  // namespace nvlsim
