/** The pages of toolgroups and their tools. */
export { default as GroupPage } from "./tools/group";
export { default as GroupsPage } from "./tools/groups";
export { default as ToolPage } from "./tools/tool";
