import { z } from 'zod';

const chunk = z.looseObject({
  choices: z.array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }), finish_reason: z.string().nullable() })),
  usage: z.looseObject({ total_tokens: z.number() }).optional(),
  error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

/** A stream of the router as a client understands it. */
export interface ReadStream {
  /** All pieces of content, one behind the other. */
  text: string;
  /** Of `[DONE]` and error chunks, in the order in which they came. An honest stream has exactly one. */
  ends: ('done' | number)[];
  /** How many events came behind the first of these. */
  behindEnd: number;
  /** Reasons for the end, one for each chunk that gave one. */
  finishes: string[];
  usages: number;
  /** Values of the `id:` lines. */
  ids: string[];
}

/** Takes the bytes of a stream apart. An event that is cut off at the end was never received. @throws when an event is not a chunk of ours */
export function readStream(text: string): ReadStream {
  const read: ReadStream = { text: '', ends: [], behindEnd: 0, finishes: [], usages: 0, ids: [] };
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

/** The part of a stream that a client has received: whole events. */
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
  if (usage !== undefined) read.usages += 1;
  for (const { delta, finish_reason: finish } of choices) {
    read.text += delta.content ?? '';
    if (finish !== null) read.finishes.push(finish);
  }
}
