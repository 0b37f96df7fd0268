/** The pages of models, providers and shields. */
export { default as ModelsPage } from "./models/models";
export { default as ProvidersPage } from "./models/providers";
export { default as ShieldsPage } from "./models/shields";
