/**
 * Words that docs/glossary.md replaces, in all inflections. A word that is right in some places (a *part*, the *frame* of a stream) is not listed.
 */
export const refusedWords = new Set(
  [
    'mould moulds offer offers offered offering hurry hurries keeping outflow arrivals arrival standstill standstills witness witnesses',
    'pace slab slabs dictionary dictionaries tally tallies surroundings bury buries buried burial holder holders abandoned speaker speakers',
    'hear hears heard tell tells told fold folds folded lesson lessons patiently persistently patience house houses lived lives grave graves',
    'crew sleeper sleepers whoever nobody somebody everybody anybody twin twins neighbour neighbours',
    'who whose strike strikes culprit culprits gone',
  ]
    .join(' ')
    .split(' '),
);

/** Public names, and terms of a library or the field. */
export const allowedPhrases = ['HOUSE_SECRET', 'house_secret', 'houseSecret', 'dead letter', 'who may', 'open_house'];
