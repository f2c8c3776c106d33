// One set of tables for both shells, and one function per shell that reads them.
//
// SPDX-License-Identifier: MIT
#include "cli/completion_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumbline {
namespace {

/// Functions that set variables; the words in them have no blanks and need no quotes of their own.
std::string tables(const std::vector<CompletionLevel>& levels, const std::vector<KeyPath>& keys) {
  std::string level_cases;
  std::string option_cases;
  for (const CompletionLevel& level : levels) {
    std::vector<std::string> names;
    names.reserve(level.options.size());
    for (const CompletionOption& option : level.options) {
      names.push_back(option.name);
      const std::string what = option.value.is_flag ? "flag" : "value";
      option_cases += fmt::format("    '{} {}') kind={} choices='{}' ;;\n", level.path, option.name,
                                  what, fmt::join(option.value.words, " "));
    }
    level_cases += fmt::format("    '{}') commands='{}' options='{}' choices='{}' keys={} ;;\n",
                               level.path, fmt::join(level.commands, " "), fmt::join(names, " "),
                               fmt::join(level.words, " "), level.takes_keys ? 1 : 0);
  }
  std::string key_cases;
  std::vector<std::string> paths;
  paths.reserve(keys.size());
  for (const KeyPath& key : keys) {
    paths.push_back(key.path + '=');
    if (!key.words.empty())
      key_cases += fmt::format("    '{}') choices='{}' ;;\n", key.path, fmt::join(key.words, " "));
    if (key.is_file) key_cases += fmt::format("    '{}') kind=file ;;\n", key.path);
  }
  return fmt::format(R"(# What may stand behind the subcommands $1.
_plumbline_level() {{
  commands='' options='' choices='' keys=0
  case "$1" in
{}  esac
}}

# What may follow the option $2 of the subcommands $1.
_plumbline_option() {{
  kind=none choices=''
  case "$1 $2" in
{}  esac
}}

# What the key $1 of a scenario may be.
_plumbline_key() {{
  kind=word choices=''
  case "$1" in
{}  esac
}}

_plumbline_keys='{}'
)",
                     level_cases, option_cases, key_cases, fmt::join(paths, " "));
}

/// Bash splits words at '=' if COMP_WORDBREAKS has it, and then replaces only the part after it.
constexpr std::string_view kBash = R"bash(
# Puts those of the words $1 that begin with $2 into COMPREPLY, each behind $3.
_plumbline_offer() {
  COMPREPLY=($(compgen -P "$3" -W "$1" -- "$2"))
}

_plumbline_files() {
  compopt -o filenames 2> /dev/null
  local IFS=$'\n'
  COMPREPLY=($(compgen -f -- "$1"))
}

_plumbline() {
  local commands options choices keys kind
  local -a given=()
  local i joined=0 word
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ ${#given[@]} -gt 0 && ( $word == = || $joined == 1 ) ]]; then
      given[${#given[@]} - 1]+=$word
    else
      given+=("$word")
    fi
    [[ $word == = ]] && joined=1 || joined=0
  done
  local current=${given[${#given[@]} - 1]} previous='' level='' arguments=0
  COMPREPLY=()
  _plumbline_level ''
  for ((i = 0; i + 1 < ${#given[@]}; i++)); do
    word=${given[i]}
    if [[ " $commands " == *" $word "* ]]; then
      level=${level:+$level }$word
      _plumbline_level "$level"
    elif [[ $word == -* ]]; then
      _plumbline_option "$level" "$word"
      if [[ $kind == value ]]; then
        previous=$word
        i=$((i + 1))
      fi
    else
      arguments=$((arguments + 1))
    fi
  done
  if [[ $i -ge ${#given[@]} ]]; then  # the word behind an option
    _plumbline_option "$level" "$previous"
    if [[ -n $choices ]]; then _plumbline_offer "$choices" "$current" ''; else _plumbline_files "$current"; fi
    return 0
  fi
  _plumbline_level "$level"
  if [[ $current == -*=* ]]; then
    _plumbline_option "$level" "${current%%=*}"
    if [[ -n $choices ]]; then _plumbline_offer "$choices" "${current#*=}" ''; else _plumbline_files "${current#*=}"; fi
  elif [[ $current == -* ]]; then
    _plumbline_offer "$options" "$current" ''
  elif [[ -n $commands ]]; then
    _plumbline_offer "$commands" "$current" ''
  elif [[ $keys == 1 && $current == *=* ]]; then
    local value=${current#*=} before=''
    [[ $value == *,* ]] && before=${value%,*},
    [[ $COMP_WORDBREAKS == *=* ]] || before=${current%%=*}=$before
    _plumbline_key "${current%%=*}"
    if [[ $kind == file ]]; then
      _plumbline_files "$value"
    else
      _plumbline_offer "$choices" "${value##*,}" "$before"
    fi
  elif [[ $keys == 1 && $arguments -gt 0 ]]; then
    _plumbline_offer "$_plumbline_keys" "$current" ''
    if [[ ${#COMPREPLY[@]} -gt 0 ]]; then compopt -o nospace 2> /dev/null; else _plumbline_files "$current"; fi
  elif [[ -n $choices ]]; then
    [[ $arguments -gt 0 ]] || _plumbline_offer "$choices" "$current" ''
  else
    _plumbline_files "$current"
  fi
  return 0
}

complete -F _plumbline plumbline
)bash";

constexpr std::string_view kZsh = R"zsh(
_plumbline() {
  emulate -L zsh
  local commands options choices keys kind word current=$words[CURRENT] previous='' level=''
  local -i i arguments=0
  _plumbline_level ''
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ " $commands " == *" $word "* ]]; then
      level=${level:+$level }$word
      _plumbline_level "$level"
    elif [[ $word == -* ]]; then
      _plumbline_option "$level" "$word"
      if [[ $kind == value ]]; then
        previous=$word
        i+=1
      fi
    else
      arguments+=1
    fi
  done
  if ((i > CURRENT)); then  # the word behind an option
    _plumbline_option "$level" "$previous"
    if [[ -n $choices ]]; then compadd -- ${=choices}; else _files; fi
    return
  fi
  _plumbline_level "$level"
  if [[ $current == -*=* ]]; then
    _plumbline_option "$level" "${current%%=*}"
    compset -P '*='
    if [[ -n $choices ]]; then compadd -- ${=choices}; else _files; fi
  elif [[ $current == -* ]]; then
    compadd -- ${=options}
  elif [[ -n $commands ]]; then
    compadd -- ${=commands}
  elif [[ $keys == 1 && $current == *=* ]]; then
    _plumbline_key "${current%%=*}"
    compset -P '*='
    if [[ $kind == file ]]; then
      _files
    else
      compset -P '*,'
      compadd -- ${=choices}
    fi
  elif [[ $keys == 1 ]] && ((arguments > 0)); then
    compadd -S '' -- ${=_plumbline_keys} || _files
  elif [[ -n $choices ]]; then
    ((arguments > 0)) || compadd -- ${=choices}
  else
    _files
  fi
}

compdef _plumbline plumbline
)zsh";

}  // namespace

std::string bash_completion(const std::vector<CompletionLevel>& levels,
                            const std::vector<KeyPath>& keys) {
  return "# Completes plumbline in bash: source <(plumbline completion bash)\n" +
         tables(levels, keys) + std::string(kBash);
}

std::string zsh_completion(const std::vector<CompletionLevel>& levels,
                           const std::vector<KeyPath>& keys) {
  return "#compdef plumbline\n"
         "# Completes plumbline in zsh, after compinit: source <(plumbline completion zsh)\n" +
         tables(levels, keys) + std::string(kZsh);
}

}  // namespace plumbline
