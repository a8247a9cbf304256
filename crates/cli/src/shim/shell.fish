# Written by `stockade shim add`, removed by `stockade shim remove`.
# Keeps the shims first in PATH, whenever it changes.
function __stockade_first --on-variable PATH
    set -l shims @SHIMS@
    test "$PATH[1]" != $shims; and test -d $shims; or return 0
    set -l others
    for directory in $PATH
        test $directory = $shims; or set -a others $directory
    end
    set -gx PATH $shims $others
end
__stockade_first
