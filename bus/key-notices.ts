import type { Bus, Subscription } from './bus.ts';
import { addresses } from './subjects.ts';

/** Calls the handler with the hash of each key that was made, changed or deleted. Notices may be lost. The handler must not throw. */
export function onKeyChanged({ notices }: Pick<Bus, 'notices'>, handler: (hash: string) => void): Subscription {
  return notices.subscribe(addresses.keys.pattern, (subject) => handler(subject.slice(subject.indexOf('.') + 1)));
}
