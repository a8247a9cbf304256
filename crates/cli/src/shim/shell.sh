# Written by `stockade shim add`, removed by `stockade shim remove`.
# Keeps the shims first in PATH: now, and before each prompt of bash and zsh.
__stockade_shims=@SHIMS@
__stockade_first() {
    case "${PATH}:" in "${__stockade_shims}:"*) return 0 ;; esac
    [ -d "${__stockade_shims}" ] || return 0
    __stockade_rest=":${PATH}:"
    while :; do
        case "${__stockade_rest}" in
            *":${__stockade_shims}:"*)
                __stockade_rest="${__stockade_rest%%":${__stockade_shims}:"*}:${__stockade_rest#*":${__stockade_shims}:"}"
                ;;
            *) break ;;
        esac
    done
    __stockade_rest="${__stockade_rest#:}"
    PATH="${__stockade_shims}:${__stockade_rest%:}"
    export PATH
    unset __stockade_rest
}
__stockade_first
case "$-" in
    *i*)
        if [ -n "${ZSH_VERSION-}" ]; then
            case " ${precmd_functions-} " in
                *" __stockade_first "*) ;;
                *) eval 'precmd_functions+=(__stockade_first)' ;;
            esac
        elif [ -n "${BASH_VERSION-}" ]; then
            case "${PROMPT_COMMAND-}" in
                *__stockade_first*) ;;
                '') PROMPT_COMMAND=__stockade_first ;;
                *)
                    PROMPT_COMMAND="${PROMPT_COMMAND}
__stockade_first"
                    ;;
            esac
        fi
        ;;
esac
