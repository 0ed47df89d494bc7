"""A vocabulary for prompts: everyday words, so that any tokenizer splits them in the usual way."""

from __future__ import annotations

_WORDS = """
    above across after again air along answer apple around autumn back bake balance bank barn basket
    beach bell bench between bicycle bird blue boat body book border bottle bread bridge bright brother
    build butter cable camera candle carry castle center chair chalk change child circle city clay clean
    clock cloud coast coffee cold color copper corner cotton count courage cousin cradle cross crowd
    dance dark daughter deep desert desk distance doctor door draw dream drive dust eager early earth
    east echo edge eight empty engine evening every family farm father feather fence field finger fire
    fish flag floor flower forest four free friend fruit garden gate gentle glass gold grain grass green
    guest guitar hammer hand harbor hat heart heavy hill history hollow honey horse house hundred ice
    island iron ivory jacket journey judge juice july jump kettle key kind kitchen knife ladder lake lamp
    language large late leaf learn leather left lemon letter light lion listen little long loud lunch
    machine map market marble meadow measure metal middle milk minute mirror money month moon morning
    mother mountain music narrow near needle night nine north nothing number ocean office oil old onion
    open orange orchard other oven owner page paint paper park path pebble pepper piano picture pilot
    place plain plant plate pocket poem point pond potato price proud quarter quick quiet rabbit rain
    random reach reason red ribbon rice right ring river road roof room root round rubber salt sand
    school season second seven shadow sharp sheep shell ship shoe short silver simple sister six sky
    sleep slow smoke snow soap soft song south spoon spring square stable star station stone storm story
    straw street strong student sugar summer sun table tailor tall teacher ten tent thread three thunder
    ticket tiger timber today tomato tower town train travel tree triangle true tunnel turn twelve two
    uncle under valley velvet very village violin visit voice wagon walk wall warm water wave week west
    wheat wheel white wide willow wind window winter wire wolf wonder wood wool word world yard year
    yellow yesterday young zebra
"""
VOCABULARY = tuple(_WORDS.split())
