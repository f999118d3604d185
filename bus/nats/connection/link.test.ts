import { JetStreamApiError } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import { eventually, gate } from '../../conformance/under-test.ts';
import { declareStreams } from '../declare-streams.ts';
import { defaultSettings } from '../settings.ts';
import { declarationsFor } from '../streams.ts';
import type { Declare } from './declared-streams.ts';
import { NatsLink } from './link.ts';

let server: NatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(async () => {
  await server?.close();
});

const declareAll: Declare = (declaring, beforeCreating) => declareStreams(declaring, declarationsFor(null, defaultSettings), silentLog, beforeCreating);

const missing = () => new JetStreamApiError({ code: 404, err_code: 10059, description: 'stream not found' });

it('consumers count as lost when a stream was created anew, and not when it only had no leader for a moment', async () => {
  const link = await NatsLink.open({
    ...{ servers: server.url, user: null, password: null, connectBudgetMs: 60_000, log: silentLog },
    declare: declareAll,
  });
  try {
    let redeclared = 0;
    link.streams.onRedeclare(() => {
      redeclared += 1;
    });
    const failOnce = () => {
      let tries = 0;
      return link.retries.run('do it', 60_000, async () => {
        tries += 1;
        if (tries === 1) throw missing();
        return tries;
      });
    };
    expect(await failOnce()).toBe(2);
    expect(redeclared).toBe(0);

    await link.manager.streams.delete('TOK');
    expect(await failOnce()).toBe(2);
    expect(redeclared).toBe(1);
  } finally {
    await link.close();
  }
});

describe('after the loss of a server', () => {
  /** It is away and back, empty where a stream is in memory. @param addresses of the one server, which stand for those of a cluster where there are two */
  async function losable(addresses: string[], options: { electionMs?: number } = {}) {
    const held = gate();
    let isLost = false;
    const link = await NatsLink.open({
      ...{ servers: addresses.join(','), user: null, password: null, connectBudgetMs: 60_000, log: silentLog, ...options },
      declare: async (declaring, beforeCreating) => {
        if (isLost) await held.opened;
        return declareAll(declaring, beforeCreating);
      },
    });
    onTestFinished(async () => {
      held.open();
      await link.close();
    });
    let announced = 0;
    link.onReconnect(() => {
      announced += 1;
    });
    const lose = async () => {
      isLost = true;
      await server.kill();
      await eventually(
        async () => link.isUp,
        (isUp) => !isUp,
      );
      await server.start();
    };
    const areStreamsKnown = () =>
      eventually(
        async () => link.areStreamsKnown && link.isReady,
        (found) => found,
      );
    return { link, lose, declare: () => held.open(), announced: () => announced, areStreamsKnown };
  }
  const two = () => [server.url, server.url.replace('127.0.0.1', 'localhost')];

  it('DESIGN 3: in a cluster requests are accepted, and what needs none of the streams that have no leader yet goes on, before all are looked up', async () => {
    const { link, lose, declare, announced, areStreamsKnown } = await losable(two(), { electionMs: 600_000 });
    await lose();

    const asked = await link.retries.run('ask', 60_000, (timeoutMs) => link.requests.ask('$JS.API.INFO', '', { timeoutMs }));
    expect(asked.json()).toMatchObject({ type: 'io.nats.jetstream.api.v1.account_info_response' });
    await eventually(
      async () => link.isReady,
      (isReady) => isReady,
    );
    expect(link.areStreamsKnown).toBe(false);
    expect(announced()).toBe(0);

    declare();
    await areStreamsKnown();
    expect(announced()).toBe(1);
  });

  it('DESIGN 3: a cluster whose streams are not found for longer than an election is not ready', async () => {
    const { link, lose, declare, areStreamsKnown } = await losable(two(), { electionMs: 0 });
    await lose();
    await link.up(AbortSignal.timeout(60_000));
    expect(link.isReady).toBe(false);

    declare();
    await areStreamsKnown();
  });

  it('readers of a stream that was lost meanwhile learn of it in a cluster, although they have begun before', async () => {
    const { link, lose, declare, areStreamsKnown } = await losable(two());
    let redeclared = 0;
    link.streams.onRedeclare(() => {
      redeclared += 1;
    });
    await lose();
    await link.up(AbortSignal.timeout(60_000));
    expect(redeclared).toBe(0);

    declare();
    await areStreamsKnown();
    expect(redeclared).toBe(1);
  });

  it('nothing goes on at a single server before its streams are there', async () => {
    const { link, lose, declare, areStreamsKnown } = await losable([server.url]);
    await lose();
    const flushed = () =>
      link.main.flush().then(
        () => true,
        () => false,
      );
    await eventually(flushed, (isBack) => isBack);
    expect(link.isUp).toBe(false);
    expect(link.isReady).toBe(false);

    declare();
    await areStreamsKnown();
  });
});
