import { z } from 'zod';

const chunk = z.looseObject({
  choices: z.array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }), finish_reason: z.string().nullable() })),
  usage: z.looseObject({ total_tokens: z.number(), cost: z.number().optional() }).optional(),
  error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

/** A stream of the router as a client parses it. */
export interface ReadStream {
  /** The content deltas, joined. */
  text: string;
  /** Terminal frames, `[DONE]` and error chunks, in order. A correct stream has exactly one. */
  ends: ('done' | number)[];
  /** Events behind the first terminal frame. */
  behindEnd: number;
  /** `finish_reason` of each chunk that has one. */
  finishes: string[];
  usages: number;
  /** Of the last usage, in US dollars; null without one, or without prices. */
  cost: number | null;
  /** Values of the `id:` lines. */
  ids: string[];
}

/** Parses the bytes of a stream. An event that is cut off at the end was never received. @throws when an event is not a chunk */
export function readStream(text: string): ReadStream {
  const read: ReadStream = { text: '', ends: [], behindEnd: 0, finishes: [], usages: 0, cost: null, ids: [] };
  for (const event of wholeEvents(text)) {
    for (const line of event.split('\n')) {
      if (line.startsWith('id: ')) read.ids.push(line.slice('id: '.length));
      if (!line.startsWith('data: ')) continue;
      if (read.ends.length > 0) read.behindEnd += 1;
      readData(line.slice('data: '.length), read);
    }
  }
  return read;
}

/** The complete events of a stream. */
export function receivedOf(text: string): string {
  return text.slice(0, text.lastIndexOf('\n\n') + 2);
}

function wholeEvents(text: string): string[] {
  return text.split('\n\n').slice(0, -1);
}

function readData(data: string, read: ReadStream): void {
  if (data === '[DONE]') {
    read.ends.push('done');
    return;
  }
  const { choices, usage, error } = chunk.parse(JSON.parse(data));
  if (error !== undefined) read.ends.push(error.code);
  if (usage !== undefined) {
    read.usages += 1;
    read.cost = usage.cost ?? null;
  }
  for (const { delta, finish_reason: finish } of choices) {
    read.text += delta.content ?? '';
    if (finish !== null) read.finishes.push(finish);
  }
}
