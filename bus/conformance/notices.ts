import { describe, expect, it } from 'vitest';
import { Collector, type UnderTest } from './under-test.ts';

/** Notices: subjects, patterns, order, the end of a subscription. */
export function noticeCases(underTest: UnderTest): void {
  describe('notices', () => {
    it('reach the subscribers of their subject, and no other', async () => {
      const { bus } = underTest();
      const [mine, others] = [new Collector<string>(), new Collector<string>()];
      bus.notices.subscribe('evt.s1', (subject, body) => mine.add(`${subject} ${body}`));
      bus.notices.subscribe('evt.s2', (_, body) => others.add(body));
      bus.notices.publish('evt.s1', 'a');
      bus.notices.publish('evt.s2', 'b');

      expect(await others.atLeast(1)).toEqual(['b']);
      expect(await mine.atLeast(1)).toEqual(['evt.s1 a']);
    });

    it('reach a new subscriber once it is ready, from any process, however much that has to send before', async () => {
      const { bus, another } = underTest();
      const publisher = await another();
      const collected = new Collector<string>();
      for (let n = 0; n < 5; n += 1) {
        for (let part = 0; part < 20; part += 1) bus.notices.publish('evt.other', 'x'.repeat(256 * 1024));
        const subscription = bus.notices.subscribe(`evt.s${n}`, (subject) => collected.add(subject));
        await subscription.ready();
        publisher.notices.publish(`evt.s${n}`, '');
      }

      expect(await collected.atLeast(5)).toHaveLength(5);
    });

    it('reach a pattern in which a star stands for one token, no more and no less', async () => {
      const { bus } = underTest();
      const [last, middle] = [new Collector<string>(), new Collector<string>()];
      bus.notices.subscribe('ctl.*', (subject) => last.add(subject));
      bus.notices.subscribe('a.*.c', (subject) => middle.add(subject));
      for (const subject of ['ctl', 'ctl.a.b', 'other.a', 'ctl.a', 'a.b', 'a.b.d', 'a.b.c.d', 'a.b.c', 'ctl.z', 'a.z.c']) bus.notices.publish(subject, '');

      expect(await last.atLeast(2)).toEqual(['ctl.a', 'ctl.z']);
      expect(await middle.atLeast(2)).toEqual(['a.b.c', 'a.z.c']);
    });

    it('reach every subscriber once, in the order of publishing', async () => {
      const { bus } = underTest();
      const listeners = ['evt.s1', 'evt.*', '*.s1'].map((pattern) => {
        const collected = new Collector<string>();
        bus.notices.subscribe(pattern, (_, body) => collected.add(body));
        return collected;
      });
      const bodies = Array.from({ length: 200 }, (_, index) => `${index} \u00e9\u{1f600}`);
      for (const body of bodies) bus.notices.publish('evt.s1', body);

      for (const listener of listeners) expect(await listener.atLeast(bodies.length)).toEqual(bodies);
    });

    it('are not delivered inside publish', async () => {
      const { bus } = underTest();
      const collected = new Collector<string>();
      bus.notices.subscribe('evt.s1', (_, body) => collected.add(body));
      bus.notices.publish('evt.s1', 'a');
      const handedOverInside = collected.items.length;

      expect(await collected.atLeast(1)).toEqual(['a']);
      expect(handedOverInside).toBe(0);
    });

    it('can be answered from within a handler', async () => {
      const { bus } = underTest();
      const collected = new Collector<string>();
      bus.notices.subscribe('ping.a', (_, body) => bus.notices.publish('pong.a', `${body} back`));
      bus.notices.subscribe('pong.a', (_, body) => collected.add(body));
      bus.notices.publish('ping.a', 'there and');

      expect(await collected.atLeast(1)).toEqual(['there and back']);
    });

    it('no longer reach a subscriber that stopped', async () => {
      const { bus } = underTest();
      const [stopped, standing] = [new Collector<string>(), new Collector<string>()];
      const subscription = bus.notices.subscribe('evt.s1', (_, body) => stopped.add(body));
      bus.notices.subscribe('evt.s1', (_, body) => standing.add(body));
      bus.notices.publish('evt.s1', 'a');
      await stopped.atLeast(1);
      await subscription.stop();
      bus.notices.publish('evt.s1', 'b');

      expect(await standing.atLeast(2)).toEqual(['a', 'b']);
      expect(stopped.items).toEqual(['a']);
    });

    it('survive a handler that throws: others receive theirs, and it receives the next one', async () => {
      const { bus } = underTest();
      const [faulty, sound] = [new Collector<string>(), new Collector<string>()];
      bus.notices.subscribe('evt.s1', (_, body) => {
        faulty.add(body);
        throw new Error('a bug in a handler');
      });
      bus.notices.subscribe('evt.s1', (_, body) => sound.add(body));
      bus.notices.publish('evt.s1', 'a');
      bus.notices.publish('evt.s1', 'b');

      expect(await sound.atLeast(2)).toEqual(['a', 'b']);
      expect(await faulty.atLeast(2)).toEqual(['a', 'b']);
    });
  });
}
