import { SharedOpened } from '../../shared-opened.ts';
import { dialect } from '../dialect.ts';
import { sentenceEncoder } from './adapter.ts';
import { sentenceEncoderConfig } from './config.ts';
import { Encoder } from './encoder.ts';
import { isInstalled } from './is-installed.ts';

/** Of one request: some 2 s of the thread if they are sentences, 20 s if they are as long as a text may be. */
const MAX_INPUTS = 64;

/** One thread per process, whichever blocks and configurations use it. */
const encoders = new SharedOpened<Encoder>();
const ONLY = 'encoder';

/** It runs in this process, retains nothing, and gives no text. */
export const sentenceEncoderDialect = dialect(sentenceEncoderConfig, ({ slug, name = slug }) => ({
  slug,
  name,
  address: null,
  reasoningFormat: null,
  vectors: { maxInputs: MAX_INPUTS, takesTokens: false },
  webSearch: null,
  readsPdf: false,
  dataPolicy: { trains: false, retains: false, isDistillable: true },
  open: ({ log }) => {
    const encoder = encoders.acquire(ONLY, () => new Encoder());
    let closing: Promise<void> | null = null;
    return {
      ...sentenceEncoder({ slug, name, encoder, isInstalled, log }),
      close: () => {
        closing ??= encoders.release(ONLY);
        return closing;
      },
    };
  },
}));
