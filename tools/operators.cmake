# SPDX-License-Identifier: Apache-2.0
# Writes OUT, the reference page of the operators, from src/ops: its table (ops.def) and the comment
# at the head of each family's file.
#   cmake -DFOLDER=src/ops -DOUT=docs/operators.md -P tools/operators.cmake
file(STRINGS ${FOLDER}/ops.def rows REGEX "^SN_OP\\(")
set(page "# Operators\n\n"
  "What a step program is made of: every layer becomes some of these, every gradient too. Made from\n"
  "`src/ops/ops.def` and the files that it names.\n\n"
  "`?` marks what may be absent, `...` a list, `'` an output that overwrites the input of that name.\n"
  "Shapes are NHWC, kernels of convolutions `[kh,kw,Cin/groups,Cout]`, of dense layers `[in,out]`.\n")
string(CONCAT page ${page})
set(last "")
set(n 0)
foreach(row ${rows})
  if(NOT row MATCHES
     "^SN_OP\\(([A-Z0-9_]+), \"([a-z0-9_]+)\", \"([a-z0-9_.]+)\", \"([^\"]*)\", \"([^\"]*)\"\\)$")
    message(FATAL_ERROR "ops.def has a row that is not on one line: ${row}")
  endif()
  set(name ${CMAKE_MATCH_2})
  set(source ${CMAKE_MATCH_3})
  set(in "${CMAKE_MATCH_4}")
  set(out "${CMAKE_MATCH_5}")
  if(NOT source STREQUAL last)
    set(last ${source})
    # The paragraphs between the licence line and the end of the first comment. Semicolons would
    # split CMake lists, so the text is read as one string.
    file(READ ${FOLDER}/${source} text)
    string(FIND "${text}" "*/" end)
    string(SUBSTRING "${text}" 0 ${end} text)
    string(REGEX REPLACE "^/\\* SPDX[^\n]*" "" text "${text}")
    string(REGEX REPLACE "\n \\* ?" "\n" text "${text}")
    string(STRIP "${text}" text)
    if(text STREQUAL "")
      message(FATAL_ERROR "${source} says nothing about its operators in its first comment")
    endif()
    string(REGEX REPLACE "\\.c$" "" title ${source})
    string(APPEND page "\n## ${title}\n\n${text}\n\n| operator | inputs | outputs |\n|---|---|---|\n")
  endif()
  string(APPEND page "| `${name}` | `${in}` | `${out}` |\n")
  math(EXPR n "${n} + 1")
endforeach()
string(APPEND page "\n${n} operators.\n")
file(WRITE ${OUT} "${page}")
