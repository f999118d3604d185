import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { ModelConfig, RouterConfig } from './router-config.ts';

/** What a call asks of a model. */
export type ModelUse = 'chat' | 'vectors';

export function serves({ embeddings }: Pick<ModelConfig, 'embeddings'>, use: ModelUse): boolean {
  return (embeddings === undefined) === (use === 'chat');
}

/** The model of chats that name none; null: `default_model` names none, or no model chats. */
export function defaultModelOf({ models, default_model: name }: Pick<RouterConfig, 'models' | 'default_model'>): ModelConfig | null {
  if (name === undefined) return models.find((model) => serves(model, 'chat')) ?? null;
  return models.find(({ id }) => id === name) ?? models.find(({ aliases }) => aliases.includes(name)) ?? null;
}

/** Of a request that names only models for the other use. @param name as the request has it */
export function wrongUse(name: string, use: ModelUse, param: 'model' | 'models'): SwitchyardError {
  const reason = use === 'chat' ? 'is an embedding model: send it to /embeddings' : 'is no embedding model: send it to /chat/completions';
  return new SwitchyardError('request.invalid', `${param}: ${name} ${reason}`, { details: { param } });
}
