import { z } from 'zod';

const event = z.looseObject({ type: z.string(), sequence_number: z.number() });
export type ReadEvent = z.infer<typeof event>;

const END = '[DONE]';
const DATA = 'data: ';

/** The events of a stream without its end marker. @throws when it has none, or when something is no event */
export function readEvents(sse: string): ReadEvent[] {
  const blocks = sse.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'));
  const data = blocks.map((block) => (block.split('\n').find((line) => line.startsWith(DATA)) ?? DATA).slice(DATA.length));
  if (data.pop() !== END) throw new Error('the stream has no end marker');
  return data.map((json) => event.parse(JSON.parse(json)));
}
