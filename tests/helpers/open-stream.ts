/** A deployment with a model router, of one process or many. */
interface Deployment {
  routerUrl: string;
  keys: { routerKey: string };
  /** Output of its processes. */
  output(): string;
}

/** A streamed completion in flight. */
export interface OpenStream {
  /** The complete body; rejects, with the server's output, when the connection breaks. */
  text: Promise<string>;
}

/** Requests a streamed completion and resolves at its first bytes: from then on it is in flight. */
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
  // A test that expects the rejection may await it later than it happens.
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
