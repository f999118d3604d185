import type { TokenStream } from '#bus/bus.ts';
import { readFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';

/** What readers saw of earlier deliveries of a client's call. `end`: its terminal frame. */
type Published = 'nothing' | 'content' | 'end';

/** @throws when the frames can't be read, so that the item is retried; after the last delivery returns `nothing` */
export async function publishedOf(
  tokens: Pick<TokenStream, 'replay'>,
  { call, framesAt }: { call: RouterCall; framesAt: string },
  { isLastDelivery }: { isLastDelivery: boolean },
): Promise<Published> {
  try {
    return publishedIn(call.callId, await tokens.replay(framesAt)); // no fail point: reads
  } catch (error) {
    if (!isLastDelivery) throw error;
    return 'nothing';
  }
}

function publishedIn(callId: string, frames: readonly Uint8Array[]): Published {
  let published: 'nothing' | 'content' = 'nothing';
  for (const bytes of frames) {
    const frame = readFrame(callId, bytes);
    if (frame === null || frame.kind === 'open') continue;
    if (frame.kind !== 'content' && frame.kind !== 'text') return 'end';
    published = 'content';
  }
  return published;
}
