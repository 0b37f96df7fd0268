/** The pages of vector stores and files. */
export { default as DocumentPage } from "./knowledge/document";
export { default as FilesPage } from "./knowledge/files";
export { default as SearchPage } from "./knowledge/search-page";
export { default as StorePage } from "./knowledge/store";
export { default as StoresPage } from "./knowledge/stores";
