import { dialect } from '../dialect.ts';
import { scripted } from './adapter.ts';
import { scriptedConfig } from './config.ts';

/** One turn of the event loop each. */
const MAX_INPUTS = 64;

/** It runs in this process, retains nothing, and its text has no author. */
export const scriptedDialect = dialect(scriptedConfig, ({ slug, name = slug }) => ({
  slug,
  name,
  address: null,
  reasoningFormat: null,
  vectors: { maxInputs: MAX_INPUTS, takesTokens: false },
  webSearch: null,
  readsPdf: false,
  dataPolicy: { trains: false, retains: false, isDistillable: true },
  open: ({ scriptedWordsPerSecond: wordsPerSecond }) => ({ ...scripted({ slug, name, wordsPerSecond }), close: async () => {} }),
}));
