#!/usr/bin/env bash
# Rows A18, B24, B25, C20, E25, E28, G24, H13, H14 and I14 of the bad-input catalogue: files that claim too much, and a
# process that gets too little; and a checkpoint of torch.distributed.checkpoint of 1 TiB. Rows that this machine cannot
# show are named; when there are any, 77: skipped.
#   limits.sh SHARDTOOL SOURCE
set -euo pipefail
shardtool=$1
source=$2
work=$(mktemp -d)
folders=("$work")
groups=()
mounted=
trap '[[ ! $mounted ]] || umount "$mounted"; rm -rf "${folders[@]}"; for group in "${groups[@]}"; do rmdir "$group" || true; done' EXIT
chmod 755 "$work"
not_here=()

fail() {
  echo "$1"
  exit 1
}

# expect ROW STATUS TEXT COMMAND...: ends with STATUS and says TEXT.
expect() {
  local row=$1 expected=$2 text=$3 status=0
  shift 3
  "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
  [[ $status == "$expected" ]] || { cat "$work/stderr"; fail "$row: exit status $status, expected $expected"; }
  grep -q "$text" "$work/stdout" "$work/stderr" || { cat "$work/stdout" "$work/stderr"; fail "$row: no word of '$text'"; }
}

# within KIBIBYTES COMMAND...: in that much of addresses, of which memory is a part.
within() {
  local kibibytes=$1
  shift
  (ulimit -v "$kibibytes" && "$@")
}

# write_length FILE LENGTH: the 8 bytes before a header.
write_length() {
  local length=$2 bytes=
  for _ in 1 2 3 4 5 6 7 8; do
    bytes+=$(printf '\\x%02x' $((length & 255)))
    length=$((length >> 8))
  done
  printf '%b' "$bytes" >"$1"
}

# sparse FILE ROWS COLUMNS: a U8 tensor "w" without a block of data. False where no file can be so large.
sparse() {
  local bytes=$(($2 * $3)) header
  header="{\"w\":{\"dtype\":\"U8\",\"shape\":[$2,$3],\"data_offsets\":[0,$bytes]}}"
  write_length "$1" ${#header}
  printf %s "$header" >>"$1"
  truncate -s $((8 + ${#header} + bytes)) "$1" 2>"$work/stderr"
}

# tiny FILE TENSORS END: tensors of one byte, "n" at [n, n+1) or, with END 0, all at [0, 1).
tiny() {
  seq 0 $(($2 - 1)) | awk -v step="$3" '
    BEGIN { printf "{" }
    { begin = $1 * step
      printf "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", (NR == 1 ? "" : ","), $1, begin, begin + 1 }
    END { printf "}" }' >"$work/header"
  write_length "$1" "$(stat -c %s "$work/header")"
  cat "$work/header" >>"$1"
  head -c $(($3 == 0 ? 1 : $2)) /dev/zero >>"$1"
}

# seconds_of COMMAND...: its processor time, in $seconds, rounded down.
seconds_of() {
  local TIMEFORMAT='%U %S' times
  times=$({ time "$@" >"$work/stdout" 2>"$work/stderr" || true; } 2>&1)
  seconds=$(awk '{ print int($1 + $2) }' <<<"$times")
}

cut() {
  printf '{"version":1,"mesh":[{"axis":"tp","size":%d}],"rules":[{"match":"w","strategy":"rowwise"}]}' "$1"
}

sanitized=no
if grep -q __asan_init "$shardtool"; then sanitized=yes; fi

# A18: only memory and a few file systems take a file of a petabyte; the space for it is nowhere.
mkdir "$work/petabyte"
huge=$work/petabyte/w.safetensors
if ! sparse "$huge" 1000000000000 1000; then
  rm "$huge"
  folders+=("$(mktemp -d -p /dev/shm)")
  huge=${folders[1]}/w.safetensors
  sparse "$huge" 1000000000000 1000 || huge=
fi
if [[ $huge ]]; then
  cut 4 >"$work/4.json"
  expect A18 0 "909.49 TiB" "$shardtool" inspect "$huge"
  expect A18 0 "nothing written" "$shardtool" split "$huge" -m "$work/4.json" -o "$work/out" --dry-run
  expect A18 5 "E0403" "$shardtool" split "$huge" -m "$work/4.json" -o "$work/out"
  [[ ! -e $work/out ]] || fail "A18: published"
else
  not_here+=("A18 (no file system for a file of a petabyte)")
fi

# B24: 80 MB of header, 1.4 million overlapping tensors. B25: 700,000 tensors in order.
mkdir "$work/overlapping" "$work/tiny"
tiny "$work/overlapping/m.safetensors" 1400000 0
tiny "$work/tiny/m.safetensors" 700000 1
expect B24 4 "overlaps" "$shardtool" inspect "$work/overlapping"
expect B25 0 "700,000" "$shardtool" inspect "$work/tiny"
if [[ $sanitized == no ]]; then
  seconds_of "$shardtool" inspect "$work/overlapping"
  ((seconds < 1)) || fail "B24: refused after $seconds s"
  seconds_of "$shardtool" inspect "$work/tiny"
  ((seconds < 5)) || fail "B25: $seconds s"
  expect B24 4 "overlaps" within 400000 "$shardtool" inspect "$work/overlapping"
else
  not_here+=("B24 B25 time and memory (sanitizers take more of both)")
fi

# E25: as many layers and experts as config.json likes are told of once.
cp -r "$source" "$work/layers"
chmod -R u+w "$work/layers"
for layers in 1000000000 1000000000000000000; do
  sed "s/\"num_hidden_layers\": [0-9]*/\"num_hidden_layers\": $layers/" "$source/config.json" >"$work/layers/config.json"
  more="2, 3, 4, 5, 6 and $((layers - 7)) more"
  expect E25 0 "no tensor has index $more" timeout 60 "$shardtool" split "$work/layers" --tp 2 -n -o "$work/e25"
  expect E25 0 "a stack of $layers layers is more" timeout 60 "$shardtool" plan "$work/layers" --tp 2
  expect E25 1 "there is no tensor of layer $more" timeout 60 "$shardtool" check "$work/layers"
  if [[ $sanitized == no ]]; then
    expect E25 0 "no tensor has index $more" within 300000 "$shardtool" split "$work/layers" --tp 2 -n -o "$work/e25"
  fi
done

# E28: 2^20 devices, of which each has its own part of two tensors.
mkdir "$work/devices"
header='{"v":{"dtype":"U8","shape":[1048576],"data_offsets":[0,1048576]},"w":{"dtype":"U8","shape":[1048576,2],"data_offsets":[1048576,3145728]}}'
write_length "$work/devices/m.safetensors" ${#header}
printf %s "$header" >>"$work/devices/m.safetensors"
head -c 3145728 /dev/zero >>"$work/devices/m.safetensors"
printf '{"version":1,"mesh":[{"axis":"tp","size":1048576}],"rules":[{"match":"*","strategy":"rowwise"}]}' >"$work/devices.json"
if [[ $sanitized == no ]]; then
  expect E28 0 "1048576 ranks" within 700000 "$shardtool" inspect "$work/devices" -m "$work/devices.json" --tensors
fi

# I14: a launcher's variable that says more processes than there are.
expect I14 6 "WORLD_SIZE is 2147483647" env RANK=1 WORLD_SIZE=2147483647 TORCHELASTIC_RUN_ID=none \
  "$shardtool" split "$source" --tp 2 -n -o "$work/i14"

# C20: one tensor of 300 GB. A rank of 65536 is written; the others differ in their offset only.
mkdir "$work/large"
cut 65536 >"$work/65536.json"
if sparse "$work/large/w.safetensors" $((65536 * 16)) 300000; then
  expect C20 0 "4.58 MiB" "$shardtool" split "$work/large" -m "$work/65536.json" --rank 65535 -o "$work/c20"
  if [[ $sanitized == no ]]; then
    rm -r "$work/c20"
    expect C20 0 "4.58 MiB" within 300000 \
      "$shardtool" split "$work/large" -m "$work/65536.json" --rank 65535 -o "$work/c20" -j 1
  fi
  rm -r "$work/c20"
else
  not_here+=("C20 (no file of 300 GB here)")
fi

# DCP: 1 TiB in 4096 tensors and 8192 chunks, without a block of data. A part of it is taken by a rank of 4096, and by a
# share of 4096 on a file system that has room for the whole.
if python3 "$(dirname "$0")/sparse_dcp.py" "$work/dcp" 4096 16384 8192 2 2>"$work/stderr"; then
  limit=()
  if [[ $sanitized == no ]]; then limit=(within 300000); fi
  printf '{"version":1,"mesh":[{"axis":"tp","size":4096}],"rules":[{"match":"**","strategy":"rowwise"}]}' >"$work/4096.json"
  expect DCP 0 "(1 TiB)" "${limit[@]}" "$shardtool" inspect "$work/dcp"
  expect DCP 0 "256 MiB" "${limit[@]}" "$shardtool" split "$work/dcp" -m "$work/4096.json" --rank 4095 -o "$work/dcp-rank" -j 1
  truncate -s 2T "$work/image"
  mkdir "$work/image-mount"
  few=(-i 67108864 -J size=16 -E lazy_itable_init=1,lazy_journal_init=1,nodiscard)
  if mkfs.ext4 -q -F -m 0 "${few[@]}" "$work/image" 2>"$work/stderr" &&
    mount -o loop,noinit_itable "$work/image" "$work/image-mount" 2>"$work/stderr"; then
    mounted=$work/image-mount
    for share in 0 4095; do
      expect DCP 0 "share    $share/4096: 1 tensor, 256 MiB" "${limit[@]}" \
        "$shardtool" merge "$work/dcp" -o "$mounted/out" --share $share/4096 -j 1
    done
    umount "$mounted"
    mounted=
  else
    not_here+=("DCP merged (no file system of 2 TiB can be mounted)")
  fi
  rm -rf "$work/dcp" "$work/dcp-rank" "$work/image"
else
  not_here+=("DCP (no files of 512 GiB here)")
fi

# H14: with less and less memory a run works or says so: far below what it takes, and page by page from where the loader
# gets the libraries into memory, which is where allocations before main fail.
if [[ $sanitized == no ]]; then
  worked=0
  refused=0
  # runs_or_refuses KIBIBYTES: false where the loader gave up.
  runs_or_refuses() {
    local status=0
    within "$1" "$shardtool" split "$source" -o "$work/h14" --tp 2 -j 4 >"$work/stdout" 2>"$work/stderr" || status=$?
    case $status in
      0) worked=$((worked + 1)) && rm -r "$work/h14" ;;
      6) refused=$((refused + 1)) && [[ ! -e $work/h14 ]] && grep -q E0501 "$work/stderr" ;;
      127) return 1 ;;
      *) cat "$work/stderr"; fail "H14: exit status $status in $1 KiB" ;;
    esac
  }
  for kibibytes in 1000000 512000 384000 256000 192000 128000 96000 64000 48000; do
    runs_or_refuses "$kibibytes" || fail "H14: no libraries in $kibibytes KiB"
  done
  loads=$kibibytes
  while runs_or_refuses $((loads - 512)); do loads=$((loads - 512)); done
  for ((kibibytes = loads - 508; kibibytes < loads + 1536; kibibytes += 4)); do
    runs_or_refuses "$kibibytes" || continue
  done
  ((worked && refused)) || fail "H14: $worked runs worked, $refused were refused"
else
  not_here+=("H14 (sanitizers reserve terabytes of addresses)")
fi

# H13: a user who may have no second thread. Limits of processes do not bind root.
mkdir -m 777 "$work/nobody"
install -m 755 "$shardtool" "$work/shardtool"
cp -r "$source" "$work/source"
chmod -R a+rX "$work/source"
as_nobody=()
if ((EUID == 0)); then as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
if [[ $sanitized == no ]] && "${as_nobody[@]}" true 2>/dev/null; then
  # threads NUMBER COMMAND...: with so many threads at the most.
  threads() { (ulimit -u "$1" && shift && exec "${as_nobody[@]}" "$@"); }
  expect H13 0 "done" threads 1 "$work/shardtool" split "$work/source" -o "$work/nobody/out" --tp 2 -j 8
  expect H13 0 "same" "$shardtool" diff "$work/source" "$work/nobody/out"
  expect H13 0 "pass" threads 1 "$work/shardtool" validate "$work/nobody/out" -r "$work/source" -j 8
  # Ranks that are threads cannot do with fewer.
  for number in 1 6; do
    expect H13 6 "E0501" threads $number "$work/shardtool" validate --demo mlp --ranks 64
    expect H13 6 "E0501" threads $number "$work/shardtool" plan profile calibrate "$work/nobody" --size 4MiB --rounds 1 --ranks 16
  done
else
  not_here+=("H13 (needs setpriv, and no sanitizer)")
fi

# G24: a control group of 64 MiB, a checkpoint of 256 MiB.
memory=/sys/fs/cgroup/memory
limit_file=memory.limit_in_bytes
if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
  memory=/sys/fs/cgroup
  limit_file=memory.max
fi
group=$memory/shardtool-test-$$
if mkdir "$group" 2>/dev/null && groups+=("$group") && echo $((64 << 20)) 2>/dev/null >"$group/$limit_file"; then
  mkdir "$work/quarter"
  sparse "$work/quarter/w.safetensors" 16384 16384
  cut 4 >"$work/4.json"
  in_group() { (echo $BASHPID >"$group/cgroup.procs" && exec "$@"); }
  if [[ $sanitized == yes ]]; then
    not_here+=("G24 (sanitizers need more than 64 MiB themselves)")
  else
    expect G24 0 "256 MiB" in_group "$shardtool" split "$work/quarter" -m "$work/4.json" -o "$work/g24"
    expect G24 0 "256 MiB" in_group "$shardtool" merge "$work/g24" -o "$work/g24-merged"
    expect G24 0 "same" "$shardtool" diff "$work/quarter" "$work/g24-merged"
  fi
else
  not_here+=("G24 (no control group for memory can be made)")
fi

if ((${#not_here[@]})); then
  printf 'SKIPPED: not shown here: %s; the other rows hold\n' "$(IFS=,; echo "${not_here[*]}")"
  exit 77
fi
echo "A18 B24 B25 C20 DCP E25 E28 G24 H13 H14 I14: all hold"
