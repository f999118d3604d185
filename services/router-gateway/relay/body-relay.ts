import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { FrameFeed } from './frame-feed.ts';
import type { OpenRelay } from './relay.ts';
import { type WholeResponse, wholeResponse } from './whole-response.ts';

/** Waits for the one frame that is the whole response, so every outcome has its proper status. */
export const relayBody: OpenRelay = (deps, call) => {
  let feed: FrameFeed | null = null;
  let isResponded = false;
  const response = new Promise<WholeResponse | null>((resolve, reject) => {
    feed = new FrameFeed(deps, call, {
      onContent: () => {},
      onFrame: (frame) => {
        isResponded ||= frame.kind !== 'open';
        if (frame.kind === 'body' || frame.kind === 'error') resolve(wholeResponse(frame.status, frame.body));
        else if (frame.kind === 'done') reject(new SwitchyardError('internal', 'a stream arrived for a call that asked for a whole body'));
      },
      restart: () => {},
      onNothingLeft: () => {},
      fail: reject,
    });
    call.reply.raw.on('close', () => {
      // Settling the promise again has no effect, but Node does extra work for it.
      if (isResponded) return;
      feed?.leave('left');
      resolve(null);
    });
  });
  return { response, withdraw: (error) => feed?.withdraw(error), isOver: () => feed?.isOver ?? false };
};
