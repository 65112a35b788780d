
# Verbs before flags, files where files are meant, and paths inside an archive that was named.
_refrain_words() {
    local current="${COMP_WORDS[COMP_CWORD]}" archive="" word
    _refrain "$@"
    [[ $current == -* ]] && return
    local kept=()
    for word in "${COMPREPLY[@]}"; do
        [[ $word == -* ]] || kept+=("$word")
    done
    COMPREPLY=("${kept[@]}")
    case "${COMP_WORDS[1]}" in
        cat | list | ls | l | decompress | extract | x) ;;
        *) return ;;
    esac
    [[ $3 == -* && $3 != -- ]] && return
    for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
        [[ $word != -* && -f $word ]] && archive=$word && break
    done
    [[ -n $archive ]] || return
    compopt -o filenames -o nospace 2> /dev/null
    # One level of directories at a time, as for files.
    mapfile -t COMPREPLY < <("$1" list -q "$archive" 2> /dev/null | REFRAIN_TYPED=$current awk '
        BEGIN { typed = ENVIRON["REFRAIN_TYPED"] }
        index($0, typed) == 1 {
            slash = index(substr($0, length(typed) + 1), "/")
            path = slash ? substr($0, 1, length(typed) + slash) : $0
            if (!(path in seen)) { seen[path]; print path }
        }' | head -n 1000)
}
complete -F _refrain_words -o bashdefault -o default refrain
