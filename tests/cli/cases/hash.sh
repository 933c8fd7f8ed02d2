# The SHA-256 of every weights file: as sha256sum computes it, and held against the file by check.
shardtool -q split "$samples/tiny-llama" -o parts --tp 2 --hash sha256
diff <(grep -o '"sha256":"[0-9a-f]*"' parts/manifest.json | tr -d '"' | cut -d: -f2) \
  <(sha256sum parts/*.safetensors | cut -d' ' -f1) && echo "as sha256sum"
shardtool check parts --read-data; echo "-> $?"
shardtool -q merge parts -o whole --hash sha256 && grep -c '"sha256"' whole/manifest.json
# Without it the manifest is what it was.
shardtool -q split "$samples/tiny-llama" -o plain --tp 2
grep -c '"sha256"' plain/manifest.json
printf '\xff' | dd of=parts/model-rank-1-part-0.safetensors bs=1 seek=5000 conv=notrunc status=none
shardtool check parts --read-data | grep -A3 ST0708
shardtool split "$samples/tiny-llama" -o md5 --tp 2 --hash md5; echo "-> $?"

# The Hugging Face cache names blobs by their content: large files by SHA-256, small ones as git does.
hub=$PWD/hub/models--org--name
mkdir -p "$hub/blobs" "$hub/snapshots/c0ffee" "$hub/refs"
printf c0ffee > "$hub/refs/main"
for file in "$samples"/tiny-llama/*; do
  case $file in
    *.safetensors) blob=$(sha256sum < "$file" | cut -d' ' -f1) ;;
    *) blob=$({ printf 'blob %d\0' "$(stat -c %s "$file")"; cat "$file"; } | sha1sum | cut -d' ' -f1) ;;
  esac
  cp "$file" "$hub/blobs/$blob"
  ln -s "../../blobs/$blob" "$hub/snapshots/c0ffee/${file##*/}"
done
export HF_HUB_CACHE=$PWD/hub
shardtool check hf://org/name --read-data; echo "-> $?"
echo >> "$hub/snapshots/c0ffee/config.json"
shardtool check hf://org/name --read-data; echo "-> $?"
shardtool check hf://org/name; echo "-> $?"

# A complete output is complete with the hashes only when it has them.
split() { shardtool split "$samples/tiny-llama" -o "$1" --tp 2 --resume --hash "$2" -q; echo "-> $?"; }
split whole-hash sha256
split whole-hash sha256
split whole-hash xxh3
split plain sha256
