# How every op runs, and the choices of one.
shardtool plan "$samples/tiny-llama" --tp 2 --ops --prompt-len 16
shardtool plan "$samples/tiny-llama" --tp 2 --ops --prompt-len 16 --explain y --allow-partial-to-sharded
shardtool plan "$samples/tiny-llama" --tp 2 --ops --compare-solvers --generation D --profile h100-sxm | tail -1
# Weights that are stored packed have the names that ops read.
shardtool plan "$packed_models/mxfp4" --mesh ep=2 --ops --prompt-len 16 | tail -n 1
shardtool plan "$packed_models/gptq" --tp 2 --ops --prompt-len 16 | tail -n 1
# Policies refuse, with what to insert.
shardtool plan "$samples/tiny-llama" --tp 2 --ops --solver none
shardtool plan "$samples/tiny-llama" --tp 2 --ops --on-reshard error
shardtool plan "$samples/tiny-llama" --tp 2 --ops --on-reshard warn > /dev/null
shardtool plan "$samples/tiny-llama" --tp 2 --ops --explain h1
shardtool plan "$samples/tiny-llama" --tp 2 --pp 2 --ops
shardtool plan "$samples/tiny-llama" --tp 2 --solver greedy
shardtool plan "$samples/tiny-llama" --tp 2 --ops --to-mesh tp=4
shardtool plan "$samples/tiny-llama" --tp 2 --ops --solver exact --generation A
# Regions: the decoder scatters its residual stream, except layer 1; the end must not move.
cat > policy.json <<'END'
{"version": 1, "regions": [
  {"block": "decoder", "allow_partial_to_sharded": true,
   "regions": [{"layers": [1], "op": "norm", "allow_partial_to_sharded": false}]}]}
END
shardtool plan "$samples/tiny-llama" --tp 2 --ops --prompt-len 16 --policy policy.json | grep -E '^(layer|end)|_(reduce|scatter|gather)'
sed 's/"norm"/"nor[m]", "on_reshard": "error"/' policy.json > strict.json
shardtool plan "$samples/tiny-llama" --tp 2 --ops --prompt-len 16 --policy strict.json
# A region without an op is refused, with what the model has.
for change in 's/\[1\]/[7]/' 's/"decoder"/"decodr"/' 's/"norm"/"nrom"/'; do
  sed "$change" policy.json > unused.json
  shardtool plan "$samples/tiny-llama" --tp 2 --ops --policy unused.json; echo "exit $?"
done
sed 's/"layers"/"layer"/' policy.json > wrong.json
shardtool plan "$samples/tiny-llama" --tp 2 --ops --policy wrong.json
shardtool plan "$samples/tiny-llama" --tp 2 --ops --policy policy.json --solver none

# The collectives of the plan are those that validate counts.
shardtool split "$samples/tiny-llama" --tp 2 -o out -q
shardtool --json validate out --reference "$samples/tiny-llama" --quick > validated.json
for solver in greedy together exact; do
  shardtool --json plan out --ops --solver $solver > planned.json
  python3 - <<'END'
import json
validated, planned = json.load(open("validated.json")), json.load(open("planned.json"))
counted = {(c["axis"], c["op"]): c["predicted_count"] for c in validated["collectives"]}
assert all(c["predicted_count"] == c["counted"] for c in validated["collectives"])
rows = {}
for c in planned["collectives"]:
    rows[c["axis"], c["op"]] = rows.get((c["axis"], c["op"]), 0) + c["count"]
print(planned["solver"], "equal" if rows == counted else (rows, counted), sorted(rows.items()))
END
done

# The worked example of the manual has the numbers that the command prints.
page=$samples/../cli/man/shardtool-ops.5.scd
total() {
  shardtool plan "$samples/tiny-llama" -m "$samples/mappings/llama-fsdp4-tp2.json" --mesh fsdp=2,tp=2 --axes param \
    --ops --batch 4 --prompt-len 8 "$@" | sed -n 's/^total  *\([0-9,]*\) .*/\1/p'
}
for generation in exact A B C D; do
  told=$(grep -A 2 "^|  $generation\$" "$page" | sed -n 's/^:  \([0-9,]*\)$/\1/p' | paste -sd ' ')
  echo "$generation $told"
  test "$told" = "$(total --generation $generation) $(total --generation $generation --allow-partial-to-sharded)" ||
    echo "the manual is wrong about $generation"
done
shardtool plan "$samples/tiny-llama" --tp 4 --ops --prompt-len 64 --operand-budget 1kB; echo "exit $?"
