import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { testConfig } from '../test-support/harness.ts';
import { hello, useGateway } from '../test-support/use-gateway.ts';

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

describe('a request for the debug echo', () => {
  const echoing = { ...hello, stream: false, debug: { echo_upstream_body: true } };

  it('reaches the worker where the router has the echo on, as it does by default', async () => {
    const posted = gateway.post(echoing);
    expect((await gateway.answerNext()).request.debug).toEqual({ echo_upstream_body: true });
    expect((await posted).headers['x-switchyard-ignored']).toBeUndefined();
  });

  it('reaches it without that wish where the operator has switched the echo off, and the answer says so', async () => {
    await gateway.reopen({ config: { ...testConfig, debug_echo: false } });
    const posted = gateway.post(echoing);
    const call = await gateway.answerNext();
    expect(call.request).not.toHaveProperty('debug');
    expect(call.request).toMatchObject(hello);
    expect((await posted).headers['x-switchyard-ignored']).toBe('debug.echo_upstream_body');
  });
});
