import { JetStreamApiError } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import { declareStreams } from '../declare-streams.ts';
import { defaultSettings } from '../settings.ts';
import { declarationsFor } from '../streams.ts';
import { NatsLink } from './link.ts';

let server: NatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(async () => {
  await server?.close();
});

const missing = () => new JetStreamApiError({ code: 404, err_code: 10059, description: 'stream not found' });

it('consumers count as lost when a stream was created anew, and not when it only had no leader for a moment', async () => {
  const link = await NatsLink.open({
    ...{ servers: server.url, user: null, password: null, connectBudgetMs: 8_000, log: silentLog },
    declare: (declaring, beforeCreating) => declareStreams(declaring, declarationsFor(null, defaultSettings), silentLog, beforeCreating),
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
