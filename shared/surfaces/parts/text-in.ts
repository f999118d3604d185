import { z } from 'zod';

const textDelta = z.object({ type: z.literal('text-delta'), text: z.string() });
const text = z.string();
const DATA = 'data:';

/** The answer's text in events of the surface `parts`; other parts have none. */
export function textIn(sse: Uint8Array): string {
  return dataIn(sse)
    .map((data) => textDelta.safeParse(data).data?.text ?? '')
    .join('');
}

/** A text as it stands between the template's prefix and suffix; empty for one that is not. */
export function textOf(between: Uint8Array): string {
  return text.safeParse(jsonIn(stringOf(between))).data ?? '';
}

/** The JSON of each `data:` line; undefined for one that is no JSON. */
export function dataIn(sse: Uint8Array): unknown[] {
  const lines = stringOf(sse).split('\n');
  return lines.filter((line) => line.startsWith(DATA)).map((line) => jsonIn(line.slice(DATA.length)));
}

function stringOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

function jsonIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
