import { z } from 'zod';

const chunk = z.looseObject({
  choices: z.array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }), finish_reason: z.string().nullable() })),
  usage: z.looseObject({ total_tokens: z.number(), cost: z.number().optional() }).optional(),
  error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

const responseEvent = z.looseObject({
  type: z.string(),
  sequence_number: z.number(),
  delta: z.unknown().optional(),
  response: z.looseObject({ usage: z.looseObject({ cost: z.number().optional() }).nullable() }).optional(),
});
/** Streams of /responses name no status behind content. */
const FAILED = 502;

/** A stream of the router as a client parses it, of chunks or of events of a response. */
export interface ReadStream {
  /** The content deltas, joined. */
  text: string;
  /** Terminal frames, `[DONE]` and errors, in order. A correct stream has exactly one; the `[DONE]` behind a failed response is none. */
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

/** Parses the bytes of a stream. An event that is cut off at the end was never received. @throws when an event is none, or its number does not follow */
export function readStream(text: string): ReadStream {
  const read: ReadStream = { text: '', ends: [], behindEnd: 0, finishes: [], usages: 0, cost: null, ids: [] };
  let numbered = 0;
  for (const event of wholeEvents(text)) {
    for (const line of event.split('\n')) {
      if (line.startsWith('id: ')) read.ids.push(line.slice('id: '.length));
      if (!line.startsWith('data: ')) continue;
      const data = line.slice('data: '.length);
      if (data === '[DONE]' && numbered > 0 && typeof read.ends[0] === 'number') continue;
      if (read.ends.length > 0) read.behindEnd += 1;
      const event = data.startsWith('{"type":') ? responseEvent.parse(JSON.parse(data)) : null;
      if (event === null) {
        readData(data, read);
        continue;
      }
      if (event.sequence_number !== numbered) throw new Error(`event ${event.sequence_number} follows on ${numbered} others`);
      numbered += 1;
      readEvent(event, read);
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

function readEvent({ type, delta, response }: z.infer<typeof responseEvent>, read: ReadStream): void {
  if (type === 'response.output_text.delta') read.text += String(delta);
  if (type === 'error' || type === 'response.failed') read.ends.push(FAILED);
  if (response?.usage) {
    read.usages += 1;
    read.cost = response.usage.cost ?? null;
  }
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
