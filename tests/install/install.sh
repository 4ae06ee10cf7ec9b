#!/usr/bin/env bash
# Goal: what `cmake --install` puts down is enough for a stranger: a C program through pkg-config, a CMake project through
# find_package, each public header by itself in C and C++, man pages where man looks; also staged (DESTDIR) and moved.
# usage: install.sh BUILD_DIR SOURCE_DIR
set -u
build_dir=$1 source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BW_CACHE=$work/cache
unset BW_DEV BW_MOCK_FAULTS BW_MOCK_TRACE CFLAGS LDFLAGS DESTDIR CMAKE_PREFIX_PATH PKG_CONFIG_PATH
failures=0

step() { # WHAT COMMAND...
  local what=$1
  shift
  "$@" >"$work/log" 2>&1 && return
  failures=$((failures + 1))
  echo "FAILED: $what"
  tail -n 30 "$work/log" | sed 's/^/  /'
}

# A folder of a stranger's, with nothing of the source tree above it.
mkdir "$work/user"
cp "$source_dir/samples/vector_add.c" "$source_dir/samples/vector_add.inc" "$work/user"
cat >"$work/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.21)
project(user VERSION 1 LANGUAGES C)
find_package(bellwire 0.1 CONFIG REQUIRED)
add_executable(with_compiler vector_add.c)
target_link_libraries(with_compiler PRIVATE bellwire::bellwire)
add_executable(core_only vector_add.c)
target_link_libraries(core_only PRIVATE bellwire::bellwire-core)
END

sums() { # PROGRAM: the sample's answer on the mock
  (cd "$work" && "$1" mockkfd+amd@gfx1100) | grep -q ' 1000 sums, 0 wrong'
}

pkgconfig_consumer() { # PREFIX NAME
  local flags
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$1" -name "$2.pc")") pkg-config --cflags --libs "$2") || return 1
  # shellcheck disable=SC2086
  (cd "$work/user" && "${CC:-cc}" -std=c17 -Wall -Wextra -Werror vector_add.c -o "../$2" $flags) && sums "$work/$2"
}

cmake_consumer() { # PREFIX
  rm -rf "$work/user/build"
  cmake -S "$work/user" -B "$work/user/build" -G Ninja -DCMAKE_PREFIX_PATH="$1" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$work/user/build" && sums "$work/user/build/with_compiler" && sums "$work/user/build/core_only"
}

headers() { # PREFIX: each alone, as C and as C++, with nothing of ours but what is installed
  local header cxx
  cxx=$(command -v g++ || command -v clang++-19) || return 1
  for header in "$1"/include/bellwire/*.h; do
    echo "$header"
    echo "#include <bellwire/${header##*/}>" >"$work/one.c"
    cp "$work/one.c" "$work/one.cc"
    "${CC:-cc}" -std=c17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$1/include" "$work/one.c" &&
      "$cxx" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$1/include" "$work/one.cc" || return 1
  done
}

# A C++ program that calls a C function: the headers say extern "C".
cxx_links() { # PREFIX
  local flags cxx
  cxx=$(command -v g++ || command -v clang++-19) || return 1
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$1" -name bellwire.pc)") pkg-config --cflags --libs bellwire) || return 1
  cat >"$work/one.cc" <<'END'
#include <bellwire/bellwire.h>
#include <stdio.h>
int main(void)
{
    struct bw_ctx *ctx = nullptr;
    struct bw_err err = {};
    char line[600];
    if (bw_ctx_create(nullptr, &ctx, &err) == 0)
        bw_ctx_destroy(ctx);
    bw_err_format(&err, line, sizeof line);
    puts(line);
    return err.code;
}
END
  # Only C++ of the compiler itself: no C++ library is needed.
  # shellcheck disable=SC2086
  "$cxx" -std=c++17 -fno-exceptions -fno-rtti "$work/one.cc" -o "$work/one" $flags && "$work/one" | grep -q 'no error'
}

all_includes_all() { # PREFIX
  local header
  for header in "$1"/include/bellwire/*.h; do
    header=${header##*/}
    [ "$header" = bellwire.h ] || grep -q "<bellwire/$header>" "$1/include/bellwire/bellwire.h" || { echo "$header"; return 1; }
  done
}

pages() { # PREFIX: a page for the program and each subcommand, found by man itself where it is installed
  local name page
  for name in bellwire $("$1/bin/bellwire" --help | sed -n 's/^  \([a-z]*\) .*/bellwire-\1/p'); do
    page=$1/share/man/man1/$name.1
    [ -s "$page" ] || { echo "no $page"; return 1; }
    if command -v man >/dev/null; then
      [ "$(env -u MANPATH PATH="$1/bin:$PATH" man -w "$name")" = "$page" ] || { echo "man does not find $name"; return 1; }
      [ -z "$(MANWIDTH=100 man --warnings -l "$page" 2>&1 >/dev/null)" ] || { echo "$page has warnings"; return 1; }
    fi
  done
}

program_runs() { (cd "$work" && "$1/bin/bellwire" --version | grep -q '^bellwire [0-9]'); }
topologies() { # PREFIX: the presets, found from the program
  (cd "$work" && "$1/bin/bellwire" bench all2all --devices 'mockkfd+amd@gfx1100*2,cu=2,vram=64M' -b 4K -e 4K -n 1 --model 8xMI350X |
    grep -q '^# Modelled on 8xMI350X')
}
nothing_of_the_tree() { # PREFIX: no file names the source or build directory (libraries and the program name sources in asserts)
  ! grep -rlF -e "$source_dir" -e "$build_dir" "$1" --include='*.pc' --include='*.cmake' --include='*.h' --include='*.1'
}

step "cmake --install" cmake --install "$build_dir" --prefix "$work/prefix"
step "pkg-config bellwire" pkgconfig_consumer "$work/prefix" bellwire
step "pkg-config bellwire-core" pkgconfig_consumer "$work/prefix" bellwire-core
step "find_package(bellwire)" cmake_consumer "$work/prefix"
step "each header alone" headers "$work/prefix"
step "bellwire.h includes every other" all_includes_all "$work/prefix"
step "a C++ program" cxx_links "$work/prefix"
step "man pages" pages "$work/prefix"
step "the installed program" program_runs "$work/prefix"
step "the presets of topologies" topologies "$work/prefix"
step "no path of the source tree" nothing_of_the_tree "$work/prefix"

step "cmake --install with DESTDIR" env DESTDIR="$work/stage" cmake --install "$build_dir" --prefix /opt/bellwire
[ -x "$work/stage/opt/bellwire/bin/bellwire" ] && [ ! -e /opt/bellwire ] || step "DESTDIR holds everything" false
step "pkg-config from the stage" pkgconfig_consumer "$work/stage/opt/bellwire" bellwire
step "find_package from the stage" cmake_consumer "$work/stage/opt/bellwire"
mv "$work/prefix" "$work/moved"
step "pkg-config after a move" pkgconfig_consumer "$work/moved" bellwire
step "find_package after a move" cmake_consumer "$work/moved"
step "the presets of topologies after a move" topologies "$work/moved"
[ $failures = 0 ] && echo "installed, staged and moved: programs build, link and run"
exit $failures
