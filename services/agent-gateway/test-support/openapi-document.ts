import {
  customerAnswer,
  errorAnswer,
  journeyAnswer,
  runAnswer,
  runEnvelopeAnswer,
  sessionAnswer,
  storedEvent,
  variableValueAnswer,
} from '#shared/contracts/agent/answers.ts';
import { API_VERSIONS } from '#shared/contracts/api-versions.ts';
import type { PublishedApi } from '#shared/http-server/test-support/openapi-document.ts';
import { type Access, operations, refusalsOf } from '../openapi/operations.ts';

/** The agent's API, by the contract's runtime version. */
export const agentApi: PublishedApi<Access> = {
  title: 'Switchyard agent server',
  version: API_VERSIONS.agent,
  operations,
  refusalsOf,
  errorAnswer,
  shapes: {
    Error: errorAnswer,
    Session: sessionAnswer,
    Customer: customerAnswer,
    Event: storedEvent,
    Run: runAnswer,
    RunEnvelope: runEnvelopeAnswer,
    Value: variableValueAnswer,
    Journey: journeyAnswer,
  },
  securitySchemes: { key: { type: 'http', scheme: 'bearer' }, login: { type: 'apiKey', in: 'cookie', name: 'agent_auth' } },
  security: { key: ['key', 'login'], signature: [], none: [] },
  usualAccess: 'key',
};
