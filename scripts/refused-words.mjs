/**
 * Words for which the field has another one, in the forms in which they occur. What to write instead stands in docs/glossary.md. A word that
 * is right somewhere (a *part* of a provider's answer, the *frame* of a stream) is not here.
 */
export const refusedWords = new Set(
  [
    'mould moulds offer offers offered offering hurry hurries keeping outflow arrivals arrival standstill standstills witness witnesses',
    'pace slab slabs dictionary dictionaries tally tallies surroundings bury buries buried burial holder holders abandoned speaker speakers',
    'hear hears heard tell tells told fold folds folded lesson lessons patiently persistently patience house houses lived lives grave graves',
    'crew sleeper sleepers whoever nobody somebody everybody anybody twin twins neighbour neighbours',
    'who strike strikes culprit culprits',
  ]
    .join(' ')
    .split(' '),
);

/** Where one of them is the right word: a public name, or what a library or the field calls it. */
export const allowedPhrases = ['HOUSE_SECRET', 'house_secret', 'houseSecret', 'scripted_words_per_second', 'offer.router.call', '`abandoned`'];
