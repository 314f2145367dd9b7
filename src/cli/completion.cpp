#include "cli/completion.hpp"

#include <algorithm>
#include <vector>

#include "cli/option_text.hpp"
#include "cli/support.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/stack/compose.hpp"

namespace nvlsim::cli {
namespace {

constexpr std::string_view bash_script = R"(# bash completion of nvlsim
_nvlsim() {
  local word=${COMP_WORDS[COMP_CWORD]} line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word") ;;
      :dirs) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$word") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _nvlsim nvlsim
)";

constexpr std::string_view zsh_script = R"(#compdef nvlsim
_nvlsim() {
  local line
  local -a described
  for line in "${(@f)$($words[1] __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :files) compset -P '--*='; _files ;;
      :dirs) compset -P '--*='; _files -/ ;;
      ?*) described+=("${${line%%$'\t'*}//:/\\:}:${${line#*$'\t'}//:/\\:}") ;;
    esac
  done
  if (( ${#described} )); then _describe -V nvlsim described; fi
}
if [ "$funcstack[1]" = _nvlsim ]; then _nvlsim "$@"; else compdef _nvlsim nvlsim; fi
)";

constexpr std::string_view fish_script = R"(# fish completion of nvlsim
function __nvlsim_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' "$word")
    set -l value (string replace -r -- '^--[^=]*=' '' "$word")
    for line in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :files
                string replace -r '^' -- "$option" (__fish_complete_path "$value")
            case :dirs
                string replace -r '^' -- "$option" (__fish_complete_directories "$value")
            case '*'
                echo $line
        end
    end
end
complete -c nvlsim -f -a '(__nvlsim_complete)'
)";

struct candidates {
  std::string text;
  std::string before;  ///< prefix such as "--format=" if the word holds an option and its value

  void add(std::string_view typed, std::string_view candidate, std::string_view about = {}) {
    if (!candidate.starts_with(typed)) return;
    text += before;
    text += candidate;
    if (!about.empty()) text += '\t' + std::string(about);
    text += '\n';
  }
};

/// Shipped names. Empty if the data is not found: completion cannot report errors.
std::vector<std::string> shipped(std::string_view kind) {
  try {
    const data_folders data = folders_under(data_root());
    if (kind == "platform") return config::names_in(data.platforms);
    if (kind == "stack") return stack_names(data.stacks);
    if (kind == "model") return config::names_in(data.models);
    std::vector<std::string> out;
    for (const auto& file : shipped_scenarios()) out.push_back(file.stem().string());
    return out;
  } catch (const std::exception&) {
    return {};
  }
}

/// The kind of names an option or argument accepts ("platform", "scenario", ...), or "".
std::string kind_of(const CLI::App& command, const option_text& o) {
  if (!o.positional)
    return o.names.back() == "--platform" || o.names.back() == "--stack" || o.names.back() == "--model"
               ? o.names.back().substr(2)
               : "";
  const std::string& name = o.names.front();
  if (name == "MODEL") return "model";
  if (name == "SCENARIO" || name == "A" || name == "B") return "scenario";
  return name == "NAME" && command.get_parent() ? command.get_parent()->get_name() : "";
}

void add_values(const CLI::App& command, const option_text& o, std::string_view typed, candidates& out) {
  for (const std::string& c : o.choices) out.add(typed, c);
  if (!o.choices.empty()) return;
  if (o.positional && o.names.front() == "OPERATION") {
    for (const std::string& n : collective_names()) out.add(typed, n);
    for (const char* n : {"moe_dispatch", "moe_combine"}) out.add(typed, n);
    return;
  }
  const bool begins_with_metric = o.metavar == "RULE";  // "mfu>0.3"
  const bool is_metric = o.metavar == "METRIC" || (o.positional && o.names.front() == "METRIC");
  if (begins_with_metric || is_metric || o.names.back() == "--allow-missing") {
    for (const metric_kind k : metric_kinds)
      for (const metric& m : metrics_of(k))
        if (find_metric(m.name) == &m)  // a name of two kinds once
          for (const std::string& n : flat_names(m)) out.add(typed, n, m.meaning);
    return;
  }
  const std::string kind = kind_of(command, o);
  if (!kind.empty())
    for (const std::string& n : shipped(kind)) out.add(typed, n);
  if (o.metavar == "DIR") out.text += ":dirs\n";
  else if (o.positional || o.metavar == "FILE") out.text += ":files\n";
}

/// The command and option reached by the words before the last one.
struct place {
  const CLI::App* command;
  const CLI::Option* wants_value = nullptr;
  std::size_t arguments = 0;  ///< number of positional arguments given
};

bool takes_value(const CLI::Option* o) { return o && !describe(*o).metavar.empty(); }

place follow(const CLI::App& app, std::span<const std::string> words) {
  place p{&app};
  for (const std::string& w : words) {
    if (w == "=") continue;  // bash splits --format=json
    if (p.wants_value) {
      p.wants_value = nullptr;
    } else if (w.size() > 1 && w[0] == '-') {
      const CLI::Option* o = p.command->get_option_no_throw(w.substr(0, w.find('=')));
      if (takes_value(o) && w.find('=') == std::string::npos) p.wants_value = o;
    } else if (const auto subcommands = commands_under(*p.command); !subcommands.empty()) {
      const auto it = std::find_if(subcommands.begin(), subcommands.end(),
                                   [&](const CLI::App* c) { return c->get_name() == w; });
      if (it == subcommands.end()) return p;
      p = {*it};
    } else {
      ++p.arguments;
    }
  }
  return p;
}

void add_options(const CLI::App& command, std::string_view typed, candidates& out) {
  for (const option_text& o : options_of(command))
    if (!o.positional) out.add(typed, o.names.back(), o.description);
}

void add_arguments(const place& p, std::string_view typed, candidates& out) {
  std::size_t index = 0;
  for (const option_text& o : options_of(*p.command)) {
    if (!o.positional) continue;
    if (index++ == p.arguments || (o.several && index <= p.arguments + 1))
      return add_values(*p.command, o, typed, out);
  }
}

}  // namespace

std::string_view completion_script(std::string_view shell) {
  return shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script;
}

std::string complete(const CLI::App& app, std::span<const std::string> words) {
  candidates out;
  if (words.empty()) return {};
  const place p = follow(app, words.first(words.size() - 1));
  const std::string_view typed = words.back() == "=" ? std::string_view() : std::string_view(words.back());
  // Shells other than bash keep an option and its value in one word.
  if (const std::size_t equals = typed.find('=');
      !p.wants_value && typed.starts_with("--") && equals != typed.npos) {
    const CLI::Option* o = p.command->get_option_no_throw(std::string(typed.substr(0, equals)));
    if (!takes_value(o)) return {};
    out.before = typed.substr(0, equals + 1);
    add_values(*p.command, describe(*o), typed.substr(equals + 1), out);
    return out.text;
  }
  if (p.wants_value) add_values(*p.command, describe(*p.wants_value), typed, out);
  else if (typed.starts_with("-")) add_options(*p.command, typed, out);
  for (const CLI::App* c : p.wants_value ? std::vector<const CLI::App*>{} : commands_under(*p.command))
    out.add(typed, c->get_name(), c->get_description());
  if (!p.wants_value && !typed.starts_with("-")) add_arguments(p, typed, out);
  return out.text;
}

}  // namespace nvlsim::cli
