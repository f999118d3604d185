/** A house with a model router, in one process or in many. */
interface Deployment {
  routerUrl: string;
  keys: { routerKey: string };
  /** What its processes print. */
  output(): string;
}

/** A completion being streamed. */
export interface OpenStream {
  /** All that has come, once it ended; rejects, with what the server printed, when the connection breaks. */
  text: Promise<string>;
}

/** Asks the router to stream the answer to a message and resolves when its first bytes are there: from then on it is in flight. */
export async function openStream({ routerUrl, keys, output }: Deployment, message: string): Promise<OpenStream> {
  const response = await fetch(`${routerUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.routerKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ stream: true, messages: [{ role: 'user', content: message }] }),
  });
  if (response.status !== 200 || response.body === null) throw new Error(`the router answered ${response.status}: ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const first = await reader.read();
  const text = readOn(reader, first.value ?? '').catch((cause) => {
    throw new Error(`the stream broke off; the server printed:\n${output()}`, { cause });
  });
  // A test that expects it to break off may look later than it does.
  text.catch(() => {});
  return { text };
}

async function readOn(reader: ReadableStreamDefaultReader<string>, begun: string): Promise<string> {
  let text = begun;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
  }
}
