# I11: no escape codes without a terminal, unless asked for.
escapes() { grep -c $'\x1b' || true; }
shardtool nothing 2>&1 | escapes
FORCE_COLOR=1 shardtool nothing 2>&1 | escapes
FORCE_COLOR=1 shardtool inspect gone --color never 2>&1 | escapes
shardtool inspect gone --color always 2>&1 | escapes
NO_COLOR=1 shardtool inspect gone --color auto 2>&1 | escapes
