import type { Server } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { leastRecentlyDialled } from './next-server.ts';

const server = (port: number, lastConnect: number) => ({ port, lastConnect }) as Server;

describe('the next server to dial', () => {
  it('is one that was not dialled yet, or else the one that was dialled first: never the one that was just lost or tried', () => {
    expect(leastRecentlyDialled([server(1, 500), server(2, 0), server(3, 0)])?.port).toBe(2);
    expect(leastRecentlyDialled([server(1, 500), server(2, 900), server(3, 700)])?.port).toBe(1);
  });

  it('is left to the library without any', () => {
    expect(leastRecentlyDialled([])).toBeNull();
  });
});
