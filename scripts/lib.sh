# Shared by the scripts beside it: the distribution packages, and how they are installed. Sourced, not run.
# shellcheck shell=bash disable=SC2034

build_packages=(g++ cmake ninja-build pkg-config libsimgrid-dev libfmt-dev libcli11-dev libeigen3-dev
                nlohmann-json3-dev zlib1g-dev)
# The build of the tests needs the first ones, tests that run the others.
test_build_packages=(catch2 clang-format clang-tidy python3 locales dpkg-dev libbenchmark-dev)
test_packages=(python3-jsonschema mandoc zsh fish slurm-wlm chromium-headless-shell jupyter-nbconvert python3-ipykernel
               python3-pandas python3-matplotlib)

say() { printf '%s\n' "$*" >&2; }
die() {
  say "scripts/${0##*/}: $*"
  exit 1
}
# Shows a command on stderr, then runs it.
run() {
  say "\$ $*"
  "$@"
}

# install_packages PACKAGE...: installs those that are missing; silent and quick when none is.
install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no apt-get here; these must have been installed in some other way: $*"
    return
  fi
  local package missing=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    as_root=(sudo)
    command -v sudo >/dev/null || die "not root, and no sudo, to install the missing ${missing[*]}"
    sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; } ||
      die "sudo needs a password; run this first: sudo apt-get install ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  mkdir -p build
  local log=build/apt.log apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${as_root[@]}" "${apt[@]}" update >"$log" 2>&1 || true  # lists of before may do; the next line decides
  "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 ||
    die "apt-get cannot install ${missing[*]}; is there a network? $(grep -m 1 '^E:' "$log") (see $log)"
}

# at_least VERSION WANTED: whether a dotted version is WANTED or later.
at_least() { [[ $(printf '%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# Stops with one line when the tools are missing or too old for the build files and C++20.
check_tools() {
  local tool compiler=${CXX:-c++} version name=GCC wanted=12
  for tool in "$compiler" cmake ninja; do
    command -v "$tool" >/dev/null || die "$tool is not installed"
  done
  if "$compiler" --version | grep -qi clang; then name=Clang wanted=14; fi
  version=$("$compiler" -dumpfullversion -dumpversion)
  at_least "$version" $wanted || die "$compiler is $name $version; $wanted or later is needed (set CXX to choose another)"
  version=$(cmake --version | sed -n 's/^cmake version //p')
  at_least "$version" 3.25 || die "cmake is $version; 3.25 or later is needed"
}

# One compilation a core, as long as each has 1 GiB of memory.
jobs_that_fit() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null) || memory=$cores
  echo $((memory < 1 ? 1 : memory < cores ? memory : cores))
}

# build PRESET TARGET [CMAKE OPTION...]: configures and builds in build/PRESET; says so on stderr.
build() {
  run cmake --preset "$1" "${@:3}" --log-level=WARNING >/dev/null
  run cmake --build --preset "$1" --target "$2" -j "$(jobs_that_fit)" >&2
}
