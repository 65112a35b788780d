
# Paths inside the archive that was named.
function __fish_refrain_paths
    for word in (commandline -opc)[3..-1]
        if string match -qv -- "-*" $word; and test -f $word
            refrain list -q $word 2>/dev/null
            return
        end
    end
end
complete -c refrain -n "__fish_refrain_using_subcommand cat list ls l decompress extract x" -a "(__fish_refrain_paths)"
