import { unstatedTemplate } from '#shared/surfaces/chat-completions/unstated-template.ts';
import type { ReadyFrame } from '../frame.ts';
import { OrderedFrames } from '../ordered-frames.ts';

/** What a reader gets of complete frames of a call: texts as content with their events. */
export function readyFrames(callId: string, frames: readonly Uint8Array[]): ReadyFrame[] {
  const ready: ReadyFrame[] = [];
  const ordered = new OrderedFrames(
    { callId, replay: () => new Promise(() => {}), maxPendingBytes: Number.POSITIVE_INFINITY, unstatedTemplate },
    {
      onReady: (frame) => ready.push(frame),
      onText: ({ attempt, seq, text }, template) => ready.push({ kind: 'content', attempt, seq, sse: template.eventOf(seq, text), template: null }),
      onAttempt: () => true,
      onNothingLeft: () => {},
      onLost: () => {},
      onForeign: () => {},
      onOverflow: () => {},
      onReplayed: () => {},
    },
  );
  for (const bytes of frames) ordered.receive(bytes);
  ordered.close();
  return ready;
}
