# I09
shardtool inspect 'models/*.safetensors'
