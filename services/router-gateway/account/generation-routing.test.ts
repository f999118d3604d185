import { describe, expect, it } from 'vitest';
import type { UsageRecord } from '#bus/messages/usage.ts';
import { usageRecordOf } from '../test-support/usage-rows.ts';
import { generationRecordOf } from './generation-record.ts';

const record = (more: Partial<UsageRecord>) => usageRecordOf({ generationId: 'gen-7', keyId: 'k', ...more });
const routingOf = (more: Partial<UsageRecord>) => generationRecordOf(record(more), false).routing;
const decided = {
  requested: ['large', 'acme/small'],
  strategy: 'weighted',
  drawn: true,
  candidates: [
    { endpoint: 'acme/large@west', health: 'healthy', price: 2, weight: 0.25 },
    { endpoint: 'acme/large@east', health: 'unhealthy', price: 4, weight: 0.0625, slow: true },
  ],
  tried: [0, 1],
  excluded: [{ filter: 'zdr', endpoints: ['acme/large@north'], more: 3 }],
};

describe('the routing of a generation', () => {
  it('has candidates in order, draw, exclusions, and which endpoint answered', () => {
    expect(routingOf({ decision: { ...decided, more: 60 } })).toEqual({
      requested: ['large', 'acme/small'],
      strategy: 'weighted',
      sorted_by: null,
      seed: 'gen-7',
      endpoints: {
        total: 62,
        available: [
          { endpoint: 'acme/large@west', selected: false, health: 'healthy', price: 2, weight: 0.25, sticky: false, slow: false },
          { endpoint: 'acme/large@east', selected: true, health: 'unhealthy', price: 4, weight: 0.0625, sticky: false, slow: true },
        ],
      },
      excluded: [{ filter: 'zdr', total: 4, endpoints: ['acme/large@north'] }],
    });
    expect(generationRecordOf(record({ decision: decided }), false).provider_responses).toMatchObject([
      { endpoint_id: 'acme/large@west', provider_name: 'West', status: 502 },
      { endpoint_id: 'acme/large@east', provider_name: 'East', status: 200 },
    ]);
  });

  it('names a sort, which draws nothing', () => {
    expect(routingOf({ decision: { ...decided, strategy: 'sort', sortedBy: 'price', drawn: false } })).toMatchObject({ sorted_by: 'price', seed: null });
  });

  it('has no selected endpoint where none answered', () => {
    const attempts = record({}).attempts.slice(0, 1);

    expect(routingOf({ decision: { ...decided, tried: [0] }, attempts })?.endpoints.available.map(({ selected }) => selected)).toEqual([false, false]);
  });

  it('has none for an attempt at an endpoint that is not listed', () => {
    const [first, second] = generationRecordOf(record({ decision: { ...decided, tried: [0, 40] } }), false).provider_responses;

    expect([first?.endpoint_id, second]).toEqual(['acme/large@west', expect.not.objectContaining({ endpoint_id: expect.anything() })]);
  });

  it('is made from the record where nothing was to decide', () => {
    const attempts = record({}).attempts.slice(1);

    expect(routingOf({ decision: null, attempts })).toEqual({
      requested: null,
      strategy: 'single',
      sorted_by: null,
      seed: null,
      endpoints: {
        total: 1,
        available: [{ endpoint: 'acme/large@east', selected: true, health: null, price: null, weight: null, sticky: false, slow: false }],
      },
      excluded: [],
    });
    expect(routingOf({ decision: null, attempts: [], model: null, provider: null })).toMatchObject({ endpoints: { total: 1, available: [] } });
  });

  it('is null for a record of an earlier release', () => {
    expect(routingOf({})).toBeNull();
  });
});
