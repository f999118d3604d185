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
export const allowedPhrases = [
  'HOUSE_SECRET',
  'house_secret',
  'houseSecret',
  'scripted_words_per_second',
  // Subjects and outcomes are public names.
  'offer.router.call',
  '`offer`',
  "'abandoned'",
  '`abandoned`',
  '0022-what-runtimes-are-told',
  'npm run words -- --word house',
  // fast-check's and V8's names.
  'fc.dictionary',
  'dictionary mode',
  // Words of customers, models and certificates.
  'nobody@example.com',
  'who is {{agent.id}}?',
  'and who are you?',
  'who are you',
  'If a customer asks for an exchange, tell them',
  'tell me a long story',
  'offer to hand the conversation to a colleague',
];

/** Files with words that stay, by path prefix. */
export const exceptions = [
  { under: 'docs/adr/', because: 'an accepted record is superseded, never edited' },
  { under: 'shared/storage/migrations/', because: 'an applied migration never changes' },
  { under: 'services/router-worker/providers/scripted/', because: 'the scripted model speaks to people, and reads what they write' },
  { under: 'actors/engine/routines/steps/', because: "a text for models is part of its template's version" },
  { under: 'actors/engine/compose-run.ts', because: "a text for models is part of its template's version" },
  { under: 'actors/engine/read-run-reply.ts', because: "a text for models is part of its template's version" },
  { under: 'actors/engine/tool-message.ts', because: "a text for models is part of its template's version" },
];
