import { z } from 'zod';

const event = z.looseObject({ type: z.string(), sequence_number: z.number() });
export type ReadEvent = z.infer<typeof event>;

const END = 'data: [DONE]';

/** The events of a stream without its end marker. @throws when it has none, or when something is no event */
export function readEvents(sse: string): ReadEvent[] {
  const blocks = sse.split('\n\n').filter((block) => block !== '');
  if (blocks.pop() !== END) throw new Error('the stream has no end marker');
  return blocks.map((block) => {
    const line = block.split('\n').find((one) => one.startsWith('data: ')) ?? '';
    return event.parse(JSON.parse(line.slice('data: '.length)));
  });
}
