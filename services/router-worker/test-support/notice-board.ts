import type { NoticeBoard } from '#bus/bus.ts';

/** A synchronous in-memory NoticeBoard that records what is published. */
export function testNoticeBoard(): NoticeBoard & { sent: { subject: string; body: string }[] } {
  const sent: { subject: string; body: string }[] = [];
  const listening = new Map<string, Set<(subject: string, body: string) => void>>();
  return {
    sent,
    publish(subject, body) {
      sent.push({ subject, body });
      for (const pattern of [subject, `${subject.slice(0, subject.indexOf('.'))}.*`])
        for (const handler of listening.get(pattern) ?? []) handler(subject, body);
    },
    subscribe(pattern, handler) {
      const handlers = listening.get(pattern) ?? new Set();
      listening.set(pattern, handlers.add(handler));
      return { stop: async () => void handlers.delete(handler), ready: async () => {} };
    },
  };
}
