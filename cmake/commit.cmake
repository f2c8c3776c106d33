# The commit that is built, for what the command writes about itself.
# SPDX-License-Identifier: MIT

# Sets `variable` to the short hash of HEAD, " with changes" behind it where tracked files differ; to "unknown"
# without git, or where this is no working tree of its own. A commit or checkout configures anew; a change of a
# file alone does not.
function(plumbline_commit variable)
  set(${variable} unknown PARENT_SCOPE)
  find_package(Git QUIET)
  if(NOT Git_FOUND)
    return()
  endif()
  macro(git result)
    execute_process(COMMAND ${GIT_EXECUTABLE} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    OUTPUT_VARIABLE ${result} OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endmacro()
  git(top rev-parse --show-toplevel)
  get_filename_component(here ${PROJECT_SOURCE_DIR} REALPATH)
  if(NOT top STREQUAL here)
    return()
  endif()
  git(hash rev-parse --short=12 HEAD)
  if(NOT hash)
    return()
  endif()
  git(changes status --porcelain --untracked-files=no)
  if(changes)
    string(APPEND hash " with changes")
  endif()
  git(log rev-parse --git-path logs/HEAD)
  get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  if(EXISTS ${log})
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
  endif()
  set(${variable} ${hash} PARENT_SCOPE)
endfunction()
