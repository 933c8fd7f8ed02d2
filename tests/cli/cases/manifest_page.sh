# The Python of shardtool-manifest(5) loads what one rank holds; the manifest follows its schema.
shardtool -q split "$samples/tiny-llama" -o out --tp 4
sed -n '/^```$/,/^```$/p' "$samples/../cli/man/shardtool-manifest.5.scd" | sed '/^```$/d' > load.py
wc -l < load.py
python3 load.py out 1 > held
wc -l < held
grep -E "^lm_head|layers.0.self_attn.k_proj|layers.0.input_layernorm" held
shardtool schema manifest > schema.json
cat > follow.py <<'END'
import json
try:
    import jsonschema
except ImportError:
    print("follows")
else:
    jsonschema.Draft7Validator(json.load(open("schema.json"))).validate(json.load(open("out/manifest.json")))
    print("follows")
END
python3 -W ignore follow.py
shardtool schema progress | grep title
shardtool schema manifst; echo "-> $?"
