import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

const CORPUS = 'shared/config/manifest-corpus.test.ts';
const RESOLVE = 'actors/engine/relationships/resolve.test.ts';
const NUMBERS = 'actors/engine/relationships/resolve-numbers.test.ts';
const SEARCH = 'services/effect-worker/search/external-search.test.ts';
const VECTORS = 'services/effect-worker/search/vector-search.test.ts';
const VECTOR_CALLS = 'actors/effects/vector-search.test.ts';
const ANNOUNCED = 'actors/kinds/turn/announced-tools.test.ts';
const CALL = 'services/effect-worker/tools/call-tool.test.ts';
const GRAPH = 'services/agent-gateway/routes/journeys.test.ts';

/** Lines of the agent server's contract about the conversation engine, each with a test of it: its file, and its title or a part of it. */
const lines: readonly (readonly [line: string, file: string, title: string])[] = [
  ['context: defaults of optional blocks', CORPUS, 'fills in the defaults of optional blocks'],
  [
    'context.system_prompt',
    'tests/e2e/deployment/conversation-cases.ts',
    'goes over three messages by long-poll, each answered from the agent’s own documents',
  ],
  ['context.language', 'actors/kinds/turn/steps/compose-reply.test.ts', 'rule 81: passes a language literally, and asks to match the customer otherwise'],
  ['context.greeting', 'actors/kinds/session/session.test.ts', 'greets at offset 0, then is ready, when its configuration has a greeting'],
  ['context.preamble.examples', 'tests/e2e/preamble.test.ts', 'agent-server.md preamble: rules 111 to 113'],
  ['context.preamble: default none', 'actors/kinds/turn/preamble.test.ts', 'rule 111: an agent without examples has none, and stores nothing more'],
  ['context.preamble.announce_tools', ANNOUNCED, 'rule 110: each batch ends in one line and the status with the same text, before the reply'],
  ['context.preamble.announce_tools: default false', ANNOUNCED, 'rule 110: without it there is none'],
  ['context.routines', 'tests/e2e/conversation-tools.test.ts', 'rule 64: the tool step of a routine calls its tool, and the routine goes on'],
  ['context.policies', 'tests/e2e/first-lines.test.ts', 'npm start answers for the leak rather than the refund'],
  ['context.glossaries', 'actors/kinds/turn/steps/compose-reply.test.ts', 'rule 82: has the terms of the glossary behind the system prompt'],
  [
    'context.macros in chat_state',
    'actors/engine/routines/routine-model.test.ts',
    'rule 94: an evaluated step has its macros expanded, as the written one has',
  ],
  [
    'context.reevaluation_tools: on success and on error',
    'actors/engine/tools/tool-batch.test.ts',
    'rule 64: forces another pass by a named tool whose call %s',
  ],
  ['relationships.priorities: higher, over', RESOLVE, 'rule 21: a policy over a policy'],
  ['relationships.priorities: over a routine', RESOLVE, 'rule 21: a policy over a routine'],
  ['relationships.priorities: over_all_routines', RESOLVE, 'rule 21: a policy over all routines'],
  ['relationships.entailments: when, also_apply', NUMBERS, 'rule 25: an entailment adds policies whose condition does not hold'],
  ['mcps[]: defaults of transport and path', CORPUS, 'fills in the defaults of optional blocks'],
  ['mcps[].id: prefix of its tools; api_key as bearer', CALL, 'is the tool’s result, and its request has the unchanged arguments and the configured key'],
  ['mcps[].hostname, port', CALL, 'has failed as unreachable at a closed port, after three tries'],
  [
    'mcps[].transport',
    'services/effect-worker/tools/eras.test.ts',
    'is called without a handshake: its version, method and name stand in headers, and no session',
  ],
  ['search pgvector: the default type, user, dbname, sslmode, content_key, metadata_filter, top_k, prompt', CORPUS, 'fills in the defaults of optional blocks'],
  [
    'search pgvector: hostname, port, user, password, dbname, sslmode',
    VECTORS,
    'agent-server.md search: hostname, port, user, password, dbname and sslmode are those of the server',
  ],
  [
    'search pgvector: sslmode refuses a server without TLS',
    'services/effect-worker/search/knowledge-bases.test.ts',
    'sslmode require refuses a server without TLS',
  ],
  ['search pgvector: collection', VECTORS, 'agent-server.md search: collection: %s finds the columns by their types'],
  ['search pgvector: content_key', VECTORS, 'agent-server.md search: content_key names the body in the metadata'],
  ['search pgvector: metadata_filter', VECTORS, 'agent-server.md search: metadata_filter: the metadata has to contain %j'],
  ['search pgvector: embedding_model', VECTOR_CALLS, 'under llms.api_key, of embedding_model and embedding_dimensions'],
  ['search pgvector: embedding_dimensions equals the column’s', VECTORS, 'agent-server.md search: rule 79: fails when the table %s'],
  ['search pgvector: top_k', VECTORS, 'agent-server.md search: top_k documents count'],
  ['search pgvector: prompt', VECTOR_CALLS, 'rule 77: a query of the agent’s models, with the further instructions of search.prompt'],
  ['search pgvector: password refused by the server', VECTORS, 'agent-server.md search: rule 79: fails when the server does not let it in'],
  ['search external: hostname without a scheme', CORPUS, 'puts http:// before the host of an external search that has no scheme'],
  ['search external: path, api_key', SEARCH, 'rule 75: posts query, messages and ids with the bearer, and passes on what it answers'],
  ['search external: no api_key', SEARCH, 'rule 75: sends no bearer without a key, and nothing at all without a query'],
  [
    'search external: max_messages',
    'actors/engine/retrieval/search-input.test.ts',
    'rule 75: the query is the customer’s newest message, beside the newest messages of the conversation',
  ],
  ['search external: max_messages and timeout_seconds: defaults', CORPUS, 'puts http:// before the host of an external search that has no scheme'],
  ['search external: top_k', SEARCH, 'rule 75: takes a bare array, leaves out what has no text, and no more than top_k'],
  ['search external: timeout_seconds soft-fails', 'tests/e2e/retrieval.test.ts', 'agent-server.md search: rule 72: answers without it when it %s'],
  [
    'tool events: one per batch, with every call',
    'actors/engine/tools/tool-batch.test.ts',
    'rule 62: is one event in the order of inference, with its failures',
  ],
  [
    'tool events: tool_id, arguments, result of an injection',
    'actors/kinds/session/tool-events.test.ts',
    'is one tool event of the system, with all that was sent',
  ],
  ['preamble events', 'actors/kinds/turn/preamble.test.ts', 'rule 112: is asked for beside matching, and stands before the first stage'],
  ['GET /journeys/{id}/graph: journey, nodes, edges', GRAPH, 'is the graph of a routine, by its journey id and its routine id'],
  ['GET /journeys/{id}/graph: 404', GRAPH, 'of an unknown routine is 404, also with an invalid query: %s'],
  ['GET /journeys/{id}/graph: 401, 503', GRAPH, 'is 401 without the key, and 503 while the server is booting, also of an unknown routine'],
  ['EVAL_NODE_PARALLELISM: 1 is sequential', 'services/actor-host/boot/evaluate-documents.test.ts', 'asks at most EVAL_NODE_PARALLELISM questions at once: %d'],
  [
    'EVAL_NODE_PARALLELISM: at boot',
    'tests/e2e/deployment/routine-cases.ts',
    'EVAL_NODE_PARALLELISM: is evaluated after the start, which its graph shows at any gateway',
  ],
];

/** Lines about what a manifest may hold: an example of the corpus that breaks the line, and the field that is refused (manifest-corpus.test.ts). */
const refusals: readonly (readonly [line: string, example: string, field: string])[] = [
  ['context.system_prompt is required', 'missing-system-prompt', 'agent_config.context.system_prompt'],
  ['context.language is required', 'missing-language', 'agent_config.context.language'],
  ['context.preamble.examples: at least 1', 'preamble-without-examples', 'agent_config.context.preamble.examples'],
  ['references: version >= 1', 'reference-version-0', 'agent_config.context.system_prompt.version'],
  ['context.reevaluation_tools: ids of tools', 'reevaluation-tool-without-server', 'agent_config.context.reevaluation_tools[0].id'],
  [
    'relationships.priorities: exactly one of over and over_all_routines',
    'over-and-over-all-routines',
    'agent_config.context.relationships.priorities[0].over',
  ],
  ['relationships.priorities: one of over and over_all_routines', 'priority-over-nothing', 'agent_config.context.relationships.priorities[0].over'],
  ['relationships: references such as policy:<id>', 'reference-without-kind', 'agent_config.context.relationships.priorities[0].higher'],
  ['relationships.entailments: also_apply', 'entailment-of-nothing', 'agent_config.context.relationships.entailments[0].also_apply'],
  ['mcps[].id: namespace prefix', 'mcps-id-twice', 'agent_config.mcps[1].id'],
  ['mcps[].hostname: scheme included', 'mcps-hostname-without-scheme', 'agent_config.mcps[0].hostname'],
  ['mcps[].hostname: no port', 'mcps-hostname-with-port', 'agent_config.mcps[0].hostname'],
  ['mcps[].port is required', 'mcps-without-port', 'agent_config.mcps[0].port'],
  ['mcps[].transport: only streamable-http', 'mcps-transport', 'agent_config.mcps[0].transport'],
  ['mcps[].path starts with /', 'mcps-path-without-slash', 'agent_config.mcps[0].path'],
  ['mcps[].api_key: a reference to a variable', 'literal-optional-credential', 'agent_config.mcps[0].api_key'],
  ['search pgvector: required fields', 'search-required-fields', 'agent_config.search.collection'],
  ['search pgvector: hostname is a bare host', 'search-hostname-with-scheme', 'agent_config.search.hostname'],
  ['search pgvector: collection, optionally schema-qualified', 'search-collection-of-three-parts', 'agent_config.search.collection'],
  ['search pgvector: metadata_filter is an object', 'search-metadata-filter', 'agent_config.search.metadata_filter'],
  ['search pgvector: embedding_dimensions >= 1', 'search-embedding-dimensions-0', 'agent_config.search.embedding_dimensions'],
  ['search: top_k >= 1', 'search-top-k-0', 'agent_config.search.top_k'],
  ['search external: path starts with /', 'external-search-path-without-slash', 'agent_config.search.path'],
  ['search external: max_messages >= 1', 'external-search-max-messages-0', 'agent_config.search.max_messages'],
  ['search external: timeout_seconds > 0', 'external-search-timeout-0', 'agent_config.search.timeout_seconds'],
];

describe('the contract of the agent server', () => {
  it.each(refusals)('has a refused manifest against %s', (_, example, field) => {
    const { errors } = JSON.parse(readFileSync(join(root, `tests/corpus/manifest/invalid-${example}.json`), 'utf8')) as { errors: string[] };
    expect(errors).toContain(field);
  });

  it.each(lines)('has a test of %s', (_, file, title) => {
    expect(readFileSync(join(root, file), 'utf8')).toContain(title);
  });
});
