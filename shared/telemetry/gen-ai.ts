/**
 * Attribute names of OpenTelemetry's conventions for generative AI, pinned to one revision: they are not stable yet, and a package may rename them.
 * Spans name the revision as schema URL.
 */
export const GEN_AI_SCHEMA_URL = 'https://opentelemetry.io/schemas/1.41.0';

export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestTemperature: 'gen_ai.request.temperature',
  requestMaxTokens: 'gen_ai.request.max_tokens',
  requestStream: 'gen_ai.request.stream',
  outputType: 'gen_ai.output.type',
  responseModel: 'gen_ai.response.model',
  responseId: 'gen_ai.response.id',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  conversation: 'gen_ai.conversation.id',
  agentId: 'gen_ai.agent.id',
  agentName: 'gen_ai.agent.name',
  agentVersion: 'gen_ai.agent.version',
  workflow: 'gen_ai.workflow.name',
  dataSource: 'gen_ai.data_source.id',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolDescription: 'gen_ai.tool.description',
  toolType: 'gen_ai.tool.type',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolDefinitions: 'gen_ai.tool.definitions',
} as const;
